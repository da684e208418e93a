package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/target/scsi"
)

// keptFile is what the state directory keeps of a volume over a restart, as JSON;
// "null" is nothing.
type keptFile[T any] struct{ path string }

// load returns what was saved last; nil: nothing. Damage is an error.
func (f keptFile[T]) load() (v *T, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return v, nil
}

// save makes v stable, whole or not at all.
func (f keptFile[T]) save(v *T) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := durable.MakeDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	return durable.Replace(f.path, append(text, '\n'))
}

// remember completes a logical unit's configuration with what is kept of it.
func (a *assembly) remember(v *conf.Volume, c *scsi.LUConfig) error {
	f := keptFile[scsi.Identifying]{a.besides("identifying", v) + ".json"}
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
	f := keptFile[scsi.SanitizeNote]{a.besides("sanitize", v) + ".json"}
	c.SaveSanitizing = f.save
	if c.Sanitizing, err = f.load(); err != nil {
		return fmt.Errorf("volume %s: sanitize operation: %w; if it does not matter whether the volume is sanitized, move the file away", v.Name, err)
	}
	if c.Sanitizing != nil {
		a.log.Warn("a sanitize operation was not finished before: the volume is of no use until SANITIZE succeeds", "volume", v.Name)
	}
	return nil
}
