package daemon

import (
	"errors"
	"io/fs"

	"lunar/daemon/state"
	"lunar/internal/durable"
)

// tidy removes what a server that was killed has left half-written: in the state directory,
// and beside the configuration file. There it stays if it may be what somebody has written
// to the file while the server changed it: the file is another one than that of the last
// state, and so is this.
func (a *applier) tidy() {
	err := state.Tidy(a.dir)
	if a.serve.Config != "" {
		err = errors.Join(err, a.tidyFile())
	}
	if err != nil {
		a.log.Warn("what a change has left half-written is still there", "err", err)
	}
}

func (a *applier) tidyFile() error {
	left, err := durable.Leftover(a.serve.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	last, err2 := state.Generations{Dir: a.dir}.Last()
	switch {
	case err2 != nil || last == nil:
		return errors.Join(err, err2)
	case string(last.Text) == string(a.texts.Load().running.text), err == nil && string(last.Text) == string(left):
		return durable.RemoveLeftover(a.serve.Config)
	}
	a.log.Warn("the configuration file was edited while the server changed it, and what was edited is beside it: it is not in force", "file", durable.LeftoverOf(a.serve.Config))
	return nil
}
