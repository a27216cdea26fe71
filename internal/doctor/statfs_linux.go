package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kinds are the file systems by the number that statfs gives.
var kinds = map[int64]fsKind{
	unix.EXT4_SUPER_MAGIC:      {name: "ext4"},
	unix.XFS_SUPER_MAGIC:       {name: "xfs"},
	unix.BTRFS_SUPER_MAGIC:     {name: "btrfs"},
	unix.TMPFS_MAGIC:           {name: "tmpfs"},
	unix.OVERLAYFS_SUPER_MAGIC: {name: "overlayfs"},
	unix.F2FS_SUPER_MAGIC:      {name: "f2fs"},
	unix.ECRYPTFS_SUPER_MAGIC:  {name: "ecryptfs"},
	0x2fc12fc1:                 {name: "zfs"},
	0xca451a4e:                 {name: "bcachefs"},
	unix.NFS_SUPER_MAGIC:       {name: "NFS", remote: true},
	unix.SMB_SUPER_MAGIC:       {name: "SMB", remote: true},
	unix.SMB2_SUPER_MAGIC:      {name: "SMB", remote: true},
	unix.CIFS_SUPER_MAGIC:      {name: "CIFS", remote: true},
	unix.V9FS_MAGIC:            {name: "9p", remote: true},
	unix.CEPH_SUPER_MAGIC:      {name: "Ceph", remote: true},
	unix.AFS_SUPER_MAGIC:       {name: "AFS", remote: true},
	unix.CODA_SUPER_MAGIC:      {name: "Coda", remote: true},
	unix.FUSE_SUPER_MAGIC:      {name: "FUSE (sshfs and the like)", remote: true},
}

func kindOf(st *unix.Statfs_t) fsKind {
	magic := int64(uint32(st.Type)) // some are negative where Type is 32 bits wide
	k, ok := kinds[magic]
	if !ok {
		k.name = fmt.Sprintf("a file system of kind %#x", magic)
	}
	k.readOnly = st.Flags&unix.ST_RDONLY != 0
	return k
}
