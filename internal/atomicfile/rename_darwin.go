package atomicfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error  { return renamex(a, b, unix.RENAME_SWAP) }
func renameNew(a, b string) error { return renamex(a, b, unix.RENAME_EXCL) }

func renamex(a, b string, flag uint32) error {
	err := unix.RenamexNp(a, b, flag)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: a, New: b, Err: err}
	}
	return nil
}
