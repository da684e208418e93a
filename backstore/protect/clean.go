package protect

import (
	"errors"
	"fmt"
	"os"
)

// Clean has a copy of a sidecar file say that no region is being written: it was made with a
// copy of the data while nothing was under way, so that both agree. Whoever opens it has nothing
// to look at then.
func Clean(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var h [headerSize]byte
	_, err = f.ReadAt(h[:], 0)
	if err == nil {
		s, ok := shapeOf(h[:])
		if !ok {
			err = fmt.Errorf("%s: %s", path, mismatch(h[:], s))
		} else {
			err = (&journal{fd: int(f.Fd()), version: s.version}).write(func(int) bool { return false })
		}
	}
	return errors.Join(err, f.Close())
}
