package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/target/scsi"
)

// keptFile is what the state directory keeps of a volume over a restart, as JSON in
// a sealed file; "null" is nothing.
type keptFile[T any] struct{ kind, path string }

func keptOf[T any](a *assembly, kind string, v *conf.Volume) keptFile[T] {
	return keptFile[T]{kind, a.besides(kind, v) + ".json"}
}

// load returns what was saved last; nil: nothing. Damage is an error.
func (f keptFile[T]) load() (v *T, err error) {
	old, err := durable.LoadJSON(f.path, f.kind, &v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && old {
		err = f.save(v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return v, nil
}

// save makes v stable, whole or not at all.
func (f keptFile[T]) save(v *T) error {
	if err := durable.MakeDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	return durable.SaveJSON(f.path, f.kind, v)
}

// remember completes a logical unit's configuration with what is kept of it.
func (a *assembly) remember(v *conf.Volume, c *scsi.LUConfig) error {
	f := keptOf[scsi.Identifying](a, "identifying", v)
	c.SaveIdentifying = func(i scsi.Identifying) error { return f.save(&i) }
	info, err := f.load()
	if err != nil {
		return fmt.Errorf("volume %s: identifying information: %w; without it the file can be moved away", v.Name, err)
	}
	if info != nil {
		c.Identifying = *info
	}
	return a.sanitizing(v, c)
}

// sanitizing sets what is kept of sanitize operations, but of volumes in memory,
// which a restart empties. Of a damaged file nothing is known: the medium may be
// sanitized in part only.
func (a *assembly) sanitizing(v *conf.Volume, c *scsi.LUConfig) (err error) {
	if v.Path == "" {
		return nil
	}
	f := keptOf[scsi.SanitizeNote](a, "sanitize", v)
	c.SaveSanitizing = f.save
	if c.Sanitizing, err = f.load(); err != nil {
		return fmt.Errorf("volume %s: sanitize operation: %w; if it does not matter whether the volume is sanitized, move the file away", v.Name, err)
	}
	if c.Sanitizing != nil {
		a.log.Warn("a sanitize operation was not finished before: the volume is of no use until SANITIZE succeeds", "volume", v.Name)
	}
	return nil
}
