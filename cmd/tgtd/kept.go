package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/target/scsi"
)

// keptFile is what the state directory keeps of a volume over a restart, as JSON in
// a sealed file; "null" is nothing.
type keptFile[T any] struct{ marked }

func keptOf[T any](a *assembly, kind string, v *conf.Volume) keptFile[T] {
	return keptFile[T]{a.besides(kind, v)}
}

// load returns what was saved last; nil: nothing. Damage and loss are errors.
func (f keptFile[T]) load() (v *T, err error) { return f.get(f.settle) }

// peek is load that changes nothing.
func (f keptFile[T]) peek() (v *T, err error) {
	return f.get(func(*T, bool) error { return nil })
}

func (f keptFile[T]) get(settle func(v *T, sealed bool) error) (v *T, err error) {
	text, sealed, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = durable.Strict(text, &v)
	}
	if err == nil {
		err = settle(v, sealed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(), err)
	}
	return v, nil
}

// settle gives a file that an earlier version wrote, or a crash left, what it lacks.
func (f keptFile[T]) settle(v *T, sealed bool) error {
	if !sealed {
		return f.save(v)
	}
	return f.note()
}

// save makes v stable, whole or not at all.
func (f keptFile[T]) save(v *T) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.write(append(text, '\n'))
}

// remember completes a logical unit's configuration with what is kept of it.
func (a *assembly) remember(v *conf.Volume, c *scsi.LUConfig) error {
	f := keptOf[scsi.Identifying](a, "identifying", v)
	c.SaveIdentifying = func(i scsi.Identifying) error { return f.save(&i) }
	info, err := f.load()
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, adviseIdentifying(f.marked, err))
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
		return fmt.Errorf("volume %s: %w", v.Name, adviseSanitizing(f.marked, err))
	}
	if c.Sanitizing != nil {
		a.log.Warn("a sanitize operation was not finished before: the volume is of no use until SANITIZE succeeds", "volume", v.Name)
	}
	return nil
}

func adviseIdentifying(f marked, err error) error {
	return fmt.Errorf("identifying information: %w; put a copy back, or, to go on without it, %s", err, f.without())
}

func adviseSanitizing(f marked, err error) error {
	return fmt.Errorf("sanitize operation: %w; put a copy back, or, if it does not matter whether the volume is sanitized, %s", err, f.without())
}
