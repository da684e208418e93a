package volumes

import (
	"fmt"
	"os"

	"lunar/conf"
	"lunar/daemon/medium"
)

// Still refuses a path that does not lead to the file or device any more that the volume
// has open: it was deleted, replaced, or covered by a file system.
func (a *Set) Still(v *conf.Volume) error {
	if v.Path == "" {
		return nil
	}
	now, err := os.Stat(v.Path)
	if err != nil {
		return fmt.Errorf("%w; the volume goes on with the open file or device", err)
	}
	was := a.Open[v.Name].file
	if was == nil || os.SameFile(was, now) || medium.SameDevice(was, now) {
		return nil
	}
	return fmt.Errorf("%s leads to another file or device than the volume has open, and goes on with", v.Path)
}
