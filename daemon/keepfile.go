package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/daemon/state"
	"lunar/internal/durable"
)

// write writes the file, if there is one to be written. After an error it is as it was.
func (e *editing) write() error {
	if e == nil || e.file == nil || string(e.file.Text()) == string(e.was.text) {
		return nil
	}
	if e.allowed.Yes || len(e.allowed.Shrink) > 0 {
		if err := state.NotePending(e.dir, state.Pending{Text: e.file.Text(), Allowed: e.allowed}); err != nil {
			return conflict(fmt.Sprintf("what the change may do cannot be noted in the state directory: %v", err))
		}
	}
	err := durable.Rewrite(e.path, e.was.text, e.file.Text())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, durable.ErrChanged):
		return conflict(fmt.Sprintf("%s was changed by hand since the server read it: apply it first (lunar apply %s, or SIGHUP), then change again", e.path, e.path))
	case errors.Is(err, fs.ErrNotExist):
		return conflict(fmt.Sprintf("%s is missing: put it back, or keep the change until the next start only: keep=running (lunar: --temporary, lunar create: --keep running)", e.path))
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return conflict(fmt.Sprintf("the change cannot be written to %s (%v): make space there, or keep it until the next start only with keep=running (lunar: --temporary, lunar create: --keep running)", e.path, err))
	}
	return conflict(fmt.Sprintf("the change cannot be written to %s (%v): keep it until the next start only with keep=running (lunar: --temporary, lunar create: --keep running), or change the file where it comes from", e.path, err))
}

// writeFile writes the file: after all that may be refused and leaves nothing behind, for
// a server that is killed meanwhile must start with what it finds there; and before what a
// start has to know of.
func (c *change) writeFile() error {
	if err := c.edit.write(); err != nil {
		return err
	}
	c.undo = append(c.undo, c.edit.putBack)
	return nil
}

// putBack undoes write.
func (e *editing) putBack() error {
	if e == nil || e.file == nil || string(e.file.Text()) == string(e.was.text) {
		return nil
	}
	if err := durable.Rewrite(e.path, e.file.Text(), e.was.text); err != nil {
		return fmt.Errorf("%s has the change all the same, for it could not be put back: %w", e.path, err)
	}
	return nil
}

// ended removes the note of a change under way.
func (e *editing) ended() error {
	if e == nil || !e.allowed.Yes && len(e.allowed.Shrink) == 0 {
		return nil
	}
	return state.NonePending(e.dir)
}

// pending allows what a change of the file was allowed that a server began and did not
// end, if the file has come of it.
func (k Options) pending(dir string, text []byte) (Options, error) {
	p, err := state.ReadPending(dir)
	if err != nil || p == nil || string(p.Text) != string(text) {
		return k, err
	}
	k.Yes = k.Yes || p.Allowed.Yes
	k.AllowShrink = append(slices.Clone(k.AllowShrink), p.Allowed.Shrink...)
	return k, nil
}
