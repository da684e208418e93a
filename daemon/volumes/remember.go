package volumes

import (
	"fmt"

	"lunar/conf"
	"lunar/daemon/state"
	"lunar/target/scsi"
)

func stateFileOf[T any](a *Set, kind string, v *conf.Volume) state.File[T] {
	return state.File[T]{Marked: a.stateFile(kind, v)}
}

// remember completes a logical unit's configuration with what is kept of it.
func (a *Set) remember(v *conf.Volume, c *scsi.LUConfig) error {
	f := stateFileOf[scsi.Identifying](a, "identifying", v)
	c.SaveIdentifying = func(i scsi.Identifying) error { return f.Save(&i) }
	info, err := f.Load()
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, adviseIdentifying(f.Marked, err))
	}
	if info != nil {
		c.Identifying = *info
	}
	return a.sanitizing(v, c)
}

// sanitizing sets what is kept of sanitize operations, but of volumes in memory,
// which a restart empties. Of a damaged file nothing is known: the medium may be
// sanitized in part only.
func (a *Set) sanitizing(v *conf.Volume, c *scsi.LUConfig) (err error) {
	if v.Fleeting() {
		return nil
	}
	f := stateFileOf[scsi.SanitizeNote](a, "sanitize", v)
	c.SaveSanitizing = f.Save
	if c.Sanitizing, err = f.Load(); err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, adviseSanitizing(f.Marked, err))
	}
	if c.Sanitizing != nil {
		a.Log.Warn("a sanitize operation was not finished before: the volume is of no use until SANITIZE succeeds", "volume", v.Name)
	}
	return nil
}

func adviseIdentifying(f state.Marked, err error) error {
	return fmt.Errorf("identifying information: %w; put a copy back, or, to go on without it, %s", err, f.Without())
}

func adviseSanitizing(f state.Marked, err error) error {
	return fmt.Errorf("sanitize operation: %w; put a copy back, or, if it does not matter whether the volume is sanitized, %s", err, f.Without())
}
