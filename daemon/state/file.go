package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/internal/durable"
)

// File is what the state directory keeps of a volume over a restart, as JSON in
// a sealed file; "null" is nothing.
type File[T any] struct{ Marked }

// Load returns what was saved last; nil: nothing. Damage and loss are errors.
func (f File[T]) Load() (v *T, err error) { return f.get(f.settle) }

// Peek is load that changes nothing.
func (f File[T]) Peek() (v *T, err error) {
	return f.get(func(*T, bool) error { return nil })
}

func (f File[T]) get(settle func(v *T, sealed bool) error) (v *T, err error) {
	text, sealed, err := f.Read()
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
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return v, nil
}

// settle gives a file that an earlier version wrote, or a crash left, what it lacks.
func (f File[T]) settle(v *T, sealed bool) error {
	if !sealed {
		return f.Save(v)
	}
	return f.Mark().Make()
}

// Keep is what has to be written for v to be there; nothing if it is there already. Whoever
// calls it for several volumes calls WriteAll with all of it, and then Settled for the first.
func (f File[T]) Keep(v *T) ([]Payload, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	if was, sealed, err := f.Read(); err == nil && sealed && string(was) == string(text) && f.Mark().There() {
		return nil, nil
	}
	return []Payload{{f.Marked, text}}, nil
}

// Settled makes the name of what Keep has found stable: who wrote it may have been killed
// before that.
func (f File[T]) Settled() error { return durable.SyncDir(filepath.Dir(f.Path())) }

// Save makes v stable, whole or not at all.
func (f File[T]) Save(v *T) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.Write(append(text, '\n'))
}
