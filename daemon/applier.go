package daemon

import (
	"context"
	"crypto/rand"
	"log/slog"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
)

func newApplier(d *daemon, serve Options, dir string, log *slog.Logger) *applier {
	a := &applier{daemon: d, serve: serve, dir: dir, log: log, trail: server.NewTrail(log)}
	_, _ = rand.Read(a.etags[:]) // never fails
	a.read(conf.DefaultFile)
	a.life, a.kill = context.WithCancel(context.Background())
	return a
}

// lock begins a change of somebody. There is none once the daemon ends.
func (a *applier) lock(by server.Asker) error {
	a.changing.Lock()
	err := a.begins(by)
	if err != nil {
		a.changing.Unlock()
	}
	return err
}

// begins is lock for who holds the changes.
func (a *applier) begins(by server.Asker) error {
	why := a.frozen.why()
	if a.life.Err() != nil {
		why = "the server is stopping"
	}
	if why == "" {
		return by.Begin()
	}
	return &control.Refusal{What: "nothing was changed", State: true, Reasons: []control.Reason{{Text: why}}}
}
