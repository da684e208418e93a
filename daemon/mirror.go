package daemon

import (
	"context"
	"time"

	"lunar/backstore"
	"lunar/backstore/windows"
	"lunar/control"
	"lunar/control/server"
)

// windowsOf is what a volume's store tells if it is a mirror, or has a device for writes in
// excess.
func windowsOf(base backstore.Store) (m *control.Mirror, x *control.Excess) {
	switch s := base.(type) {
	case *windows.Mirror:
		found := control.Mirror(s.Status())
		m = &found
	case interface{ Status() windows.ExcessStatus }:
		found := control.Excess(s.Status())
		x = &found
	}
	return m, x
}

// Resync implements server.Source.
func (s *source) Resync(by server.Asker, volume string) (control.Resynced, error) {
	return s.changes.resync(by, volume)
}

// resync takes the member of a mirror back that was dropped.
func (a *applier) resync(by server.Asker, volume string) (out control.Resynced, err error) {
	if err := a.lock(by); err != nil {
		return out, err
	}
	defer a.changing.Unlock()
	refuse := func(text string) (control.Resynced, error) {
		return out, &control.Refusal{What: "no member of volume " + volume + " was taken back", State: true, Reasons: []control.Reason{{Text: text}}}
	}
	m, ok := a.daemon.Health.Base(volume).(*windows.Mirror)
	if !ok {
		return refuse("found no mirror of that name")
	}
	out.Member = m.Status().Missing
	ctx, cancel := context.WithTimeout(context.Background(), rejoinWait)
	defer cancel()
	if err := m.Rejoin(ctx); err != nil {
		return refuse(err.Error())
	}
	out.Regions = m.Status().Behind
	return out, nil
}

// rejoinWait bounds how long what is under way on a dropped member is waited for.
const rejoinWait = 30 * time.Second
