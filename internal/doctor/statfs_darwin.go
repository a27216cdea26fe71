package doctor

import "golang.org/x/sys/unix"

func kindOf(st *unix.Statfs_t) fsKind {
	return fsKind{
		name:     unix.ByteSliceToString(st.Fstypename[:]),
		remote:   st.Flags&unix.MNT_LOCAL == 0,
		readOnly: st.Flags&unix.MNT_RDONLY != 0,
	}
}
