package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	ctx, cancel := context.WithTimeout(context.Background(), rejoinWait)
	defer cancel()
	if out.Member, err = m.Rejoin(ctx); err != nil {
		return refuse(err.Error())
	}
	out.Regions = m.Status().Behind
	return out, nil
}

// rejoinWait bounds how long what is under way on a dropped member is waited for.
const rejoinWait = 30 * time.Second

// Scrub implements server.Source.
func (s *source) Scrub(by server.Asker, volume string) (control.Scrubbed, error) {
	out, err := s.changes.scrub(by, volume)
	return out, notMoved(fmt.Sprintf("the members of volume %s were not compared", volume), err)
}

// scrub compares the members of a mirror.
func (a *applier) scrub(by server.Asker, volume string) (out control.Scrubbed, err error) {
	if err := by.Begin(); err != nil {
		return out, err
	}
	a.changing.Lock()
	m, ok := a.daemon.Health.Base(volume).(*windows.Mirror)
	var of *move
	if ok {
		of, err = a.moves.begin(a.life, volume, comparing, "") // which a change of the volume cancels
	} else {
		err = errors.New("found no mirror of that name")
	}
	a.changing.Unlock()
	if err != nil {
		return out, err
	}
	defer func() { a.moves.end(volume, of, err) }()
	var compared atomic.Int64
	defer by.Awaits(func() control.Progress {
		percent := int(compared.Load() * 100 / m.Info().Size)
		return control.Progress{What: "volume " + volume + ": its members are compared", Percent: &percent}
	})()
	defer by.Stoppable(of.cancel)()
	began := time.Now()
	found, err := m.Scrub(of.ctx, compared.Store)
	return control.Scrubbed{
		Compared: found.Compared, Mended: found.Mended, Regions: found.Regions, Differs: append([]int64{}, found.Differs...),
		Took: time.Since(began).Round(time.Millisecond).String(),
	}, err
}
