package daemon

import (
	"errors"
	"fmt"
	"io/fs"

	"lunar/internal/durable"
)

// write writes the file, if there is one to be written. After an error it is as it was.
func (e *editing) write() error {
	if e == nil || e.file == nil {
		return nil
	}
	err := durable.Rewrite(e.path, e.was.text, e.file.Text())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, durable.ErrChanged):
		return conflict(fmt.Sprintf("%s was changed by hand since the server read it: apply it first (lunar apply %s, or SIGHUP), then change again", e.path, e.path))
	case errors.Is(err, fs.ErrNotExist):
		return conflict(fmt.Sprintf("%s is missing: put it back, or keep the change until the next start only: keep=running (lunar: --keep running)", e.path))
	}
	return conflict(fmt.Sprintf("the change cannot be written to %s (%v): keep it until the next start only with keep=running (lunar: --keep running), or change the file where it comes from", e.path, err))
}

// putBack undoes write.
func (e *editing) putBack() error {
	if e == nil || e.file == nil {
		return nil
	}
	if err := durable.Rewrite(e.path, e.file.Text(), e.was.text); err != nil {
		return fmt.Errorf("%s has the change all the same, for it could not be put back: %w", e.path, err)
	}
	return nil
}
