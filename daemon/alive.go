package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/internal/evloop"
	"lunar/target"
)

// aliveTime is how long an event thread may take for a pass until it counts as hung. A
// pass takes microseconds; a machine that is out of CPU time may take seconds for it.
const aliveTime = 10 * time.Second

// pulse asks an event thread to take a turn. One question at a time is under way, however
// many ask: a thread that hangs gets no more of them.
type pulse struct {
	loop *evloop.Loop

	mu      sync.Mutex
	turned  chan struct{} // closed by the thread
	pending bool
	since   time.Time // of the question
}

// ask returns what the thread closes in its next pass, and since when it is waited for.
func (p *pulse) ask() (turned <-chan struct{}, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pending {
		p.turned, p.pending, p.since = make(chan struct{}), true, time.Now()
		p.loop.Post(evloop.Func(p.answer))
	}
	return p.turned, p.since
}

func (p *pulse) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = false
	close(p.turned)
}

// vitals is whether the server lives, and whether initiators may come.
type vitals struct {
	pulses []*pulse

	mu      sync.Mutex
	serving bool // its portals were opened
	ending  bool
}

func (v *vitals) watch(loops []*evloop.Loop) {
	for _, l := range loops {
		v.pulses = append(v.pulses, &pulse{loop: l})
	}
}

// serves notes that the portals are open.
func (v *vitals) serves() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.serving = true
}

// ends notes that the server stops.
func (v *vitals) ends() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ending = true
}

func (v *vitals) phase() (serving, ending bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.serving, v.ending
}

// Alive waits until every event thread has taken a turn. The error names those that have
// not within aliveTime, or until ctx ends. It does not depend on volumes: a store that
// hangs holds worker goroutines or io_uring requests, but no event thread. A server that
// is stopping is alive, because the stop has bounds of its own.
func (v *vitals) Alive(ctx context.Context) error {
	if _, ending := v.phase(); ending {
		return nil
	}
	var errs []error
	for _, p := range v.pulses {
		turned, since := p.ask()
		limit := time.NewTimer(time.Until(since.Add(aliveTime)))
		select {
		case <-turned:
		case <-limit.C:
			errs = append(errs, fmt.Errorf("event thread %s has not taken a turn for %v", p.loop.Name(), time.Since(since).Round(time.Second)))
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("event thread %s has not taken a turn for %v: %w", p.loop.Name(), time.Since(since).Round(time.Millisecond), context.Cause(ctx)))
		}
		limit.Stop()
	}
	if _, ending := v.phase(); ending { // threads end at the end of a stop
		return nil
	}
	return errors.Join(errs...)
}

// Ready tells why initiators cannot log in now: nil if they can through some portal.
func (d *daemon) Ready() error {
	serving, ending := d.phase()
	switch {
	case ending:
		return errors.New("the server is stopping")
	case !serving:
		return errors.New("the portals are not open yet")
	}
	cfg, drains := d.config.Load(), d.Drains()
	var drained []string
	for _, g := range cfg.PortalGroups {
		if !slices.ContainsFunc(drains, func(n target.Drain) bool { return n.Tag == g.Tag && !n.Portal.IsValid() }) {
			return nil
		}
		drained = append(drained, g.Name)
	}
	return fmt.Errorf("all portal groups are drained: %s", strings.Join(drained, ", "))
}
