package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kinds are the file systems by the number that statfs gives. It is no map, which would be made whenever the program
// starts.
var kinds = [...]struct {
	magic int64
	kind  fsKind
}{
	{unix.EXT4_SUPER_MAGIC, fsKind{name: "ext4"}},
	{unix.XFS_SUPER_MAGIC, fsKind{name: "xfs"}},
	{unix.BTRFS_SUPER_MAGIC, fsKind{name: "btrfs"}},
	{unix.TMPFS_MAGIC, fsKind{name: "tmpfs"}},
	{unix.OVERLAYFS_SUPER_MAGIC, fsKind{name: "overlayfs"}},
	{unix.F2FS_SUPER_MAGIC, fsKind{name: "f2fs"}},
	{unix.ECRYPTFS_SUPER_MAGIC, fsKind{name: "ecryptfs"}},
	{0x2fc12fc1, fsKind{name: "zfs"}},
	{0xca451a4e, fsKind{name: "bcachefs"}},
	{unix.NFS_SUPER_MAGIC, fsKind{name: "NFS", remote: true}},
	{unix.SMB_SUPER_MAGIC, fsKind{name: "SMB", remote: true}},
	{unix.SMB2_SUPER_MAGIC, fsKind{name: "SMB", remote: true}},
	{unix.CIFS_SUPER_MAGIC, fsKind{name: "CIFS", remote: true}},
	{unix.V9FS_MAGIC, fsKind{name: "9p", remote: true}},
	{unix.CEPH_SUPER_MAGIC, fsKind{name: "Ceph", remote: true}},
	{unix.AFS_SUPER_MAGIC, fsKind{name: "AFS", remote: true}},
	{unix.CODA_SUPER_MAGIC, fsKind{name: "Coda", remote: true}},
	{unix.FUSE_SUPER_MAGIC, fsKind{name: "FUSE (sshfs and the like)", remote: true}},
}

func kindOf(st *unix.Statfs_t) fsKind {
	magic := int64(uint32(st.Type)) // some are negative where Type is 32 bits wide
	k := fsKind{name: fmt.Sprintf("a file system of kind %#x", magic)}
	for _, known := range kinds {
		if known.magic == magic {
			k = known.kind
		}
	}
	k.readOnly = st.Flags&unix.ST_RDONLY != 0
	return k
}
