package protect

import (
	"errors"
	"io/fs"
	"os"
)

// adopt makes a sidecar file that there is, and that was made for fewer bytes than
// the volume has now, fit: what is new has no tuples. It drops what a process left
// behind the end that was making the volume smaller.
func adopt(path string, now shape) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var h [headerSize]byte
	if n, _ := f.ReadAt(h[:], 0); n < headerSize {
		return nil // a new one
	}
	was, ok := shapeOf(h[:])
	info, err := f.Stat()
	if err != nil || !ok || was.kind != now.kind || was.block != now.block || was.size > now.size {
		return err // Open says what is wrong
	}
	if info.Size() > was.fileSize() {
		if err := f.Truncate(was.end()); err != nil {
			return err
		}
	}
	j, now := &journal{fd: int(f.Fd()), version: was.version}, now.of(was.version)
	if err := j.wipe(was); err != nil {
		return err
	}
	if was.regionShift() != now.regionShift() {
		if err := j.read(); err != nil {
			return err
		}
		if j.bits != [logSize]byte{} {
			if err := j.write(func(int) bool { return true }); err != nil {
				return err
			}
		}
	}
	if was.size == now.size {
		return nil
	}
	return j.put(now.header(), 0)
}
