package scsi

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// EveryTag in a table of access states stands for all target ports that it does not name.
const EveryTag uint16 = 0

// flux are the commands that wait while it is being decided which of several servers
// serves a logical unit. Commands come to it by restrictFlux alone, so that a unit in
// use costs nothing.
//
// INVARIANT: open is set before any nexus has restrictFlux, and cleared after none has
// it any more.
type flux struct {
	mu      sync.Mutex
	open    bool
	waiting []*held // in order of arrival
	expiry  *time.Timer
}

// held is a command that waits in a flux. It implements feature and Task.
type held struct {
	c     *Command
	waits bool // it is on the list; under flux.mu
}

// Hold keeps the commands waiting that depend on who serves the logical unit, from now
// until Settle: those on the medium, and REPORT TARGET PORT GROUPS. If that does not come
// within patience, they end with NOT READY, ASYMMETRIC ACCESS STATE TRANSITION, and so do
// others until it comes; REPORT TARGET PORT GROUPS reports all groups in transition. What
// has begun goes on: Quiesce waits for that. A second Hold changes nothing. Any goroutine
// may call it.
func (lu *LogicalUnit) Hold(patience time.Duration) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if lu.mu.holding {
		return
	}
	lu.mu.holding = true
	lu.mu.holds++
	this := lu.mu.holds
	lu.flux.begin(patience, func() { lu.expireHold(this) })
	lu.restrictAll()
}

// Settle says how the logical unit is reached by each target port, and EveryTag for those
// that are not named, and ends Hold: what has waited goes on in the order in which it
// came. All nexuses are told if that is a change of state. If another server serves the unit,
// elsewhere leads to it, for commands by ports in active states; nil: this one serves it.
func (lu *LogicalUnit) Settle(access map[uint16]PortAccess, elsewhere Carrier) {
	if elsewhere != nil {
		lu.ClearACA(nil) // it is the other server's matter
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	old := lu.access.Load()
	table := make(accessTable, len(access))
	for tag, a := range access {
		g := groupAccess{a, old.of(tag).cause}
		if old.state(tag) != a.State {
			g.cause = accessImplicit
		}
		table[tag] = g
	}
	lu.access.Store(&table)
	lu.mu.carrier = elsewhere
	lu.tellAccess(old, &table, nil)
	lu.endHold()
}

// expireHold is called when the patience of a Hold has ended, by its number.
func (lu *LogicalUnit) expireHold(which uint64) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if !lu.mu.holding || lu.mu.holds != which {
		return
	}
	lu.access.Store(&accessTable{EveryTag: {PortAccess{State: Transitioning}, accessImplicit}})
	lu.endHold()
}

// endHold lets what waits go on. The caller holds mu.
func (lu *LogicalUnit) endHold() {
	lu.mu.holding = false
	lu.restrictAll()
	for n := range lu.mu.nexuses {
		if n.passage != nil {
			n.passage.move(lu.carrierOf(n), lu.mu.carrier == nil)
		}
	}
	lu.flux.end()
}

func (f *flux) begin(patience time.Duration, expired func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	f.expiry = time.AfterFunc(patience, expired)
}

func (f *flux) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.expiry != nil {
		f.expiry.Stop()
	}
	f.open, f.expiry = false, nil
	for _, h := range f.waiting {
		h.waits = false
		h.c.Port.Wake(h.c, h)
	}
	f.waiting = nil
}

// enter reports whether h waits; if not, the flux has ended.
func (f *flux) enter(h *held) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.waits = f.open; h.waits {
		f.waiting = append(f.waiting, h)
	}
	return h.waits
}

// hold has a command wait.
func (lu *LogicalUnit) hold(c *Command) {
	h := &held{c: c}
	c.feature = h
	c.running++ // before another thread can wake it
	if !lu.flux.enter(h) {
		h.Run()
	}
}

// Held reports that the command waits until it is decided who serves its logical unit.
func (c *Command) Held() bool {
	_, held := c.feature.(*held)
	return held
}

// Run implements Task: it is decided.
func (h *held) Run() {
	c := h.c
	c.running--
	c.feature = nil
	if c.ending {
		c.settle()
		return
	}
	c.Nexus.LU.proceed(c)
}

// cancel implements feature.
func (h *held) cancel(c *Command) bool {
	f := &c.Nexus.LU.flux
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := h.waits
	if waited {
		h.waits = false
		f.waiting = slices.DeleteFunc(f.waiting, func(o *held) bool { return o == h })
	}
	return waited
}

// ended implements feature.
func (h *held) ended(c *Command) { c.feature = nil }

// discarded implements feature.
func (h *held) discarded(c *Command, _ bool) { h.cancel(c) }

// Quiesce waits until no command is under way that Hold would have kept waiting, and that
// began before. An error of ctx tells that one has not ended in time. It must not be called
// on an event thread.
func (lu *LogicalUnit) Quiesce(ctx context.Context) error {
	lu.mu.Lock()
	nexuses := slices.Collect(maps.Keys(lu.mu.nexuses))
	lu.mu.Unlock()
	var left atomic.Int32
	left.Store(int32(len(nexuses)) + 1)
	quiet := make(chan struct{})
	done := func() {
		if left.Add(-1) == 0 {
			close(quiet)
		}
	}
	for _, n := range nexuses {
		if n.AwaitTasks == nil {
			done()
			continue
		}
		n.AwaitTasks((*Command).undecided, done)
	}
	done()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undecided reports that the command has begun what only the server may do that serves
// the logical unit.
func (c *Command) undecided() bool {
	return c.row != nil && c.row.restricted&restrictFlux != 0 && !c.Held() && !c.relayed() && !(c.place != nil && !c.place.granted)
}
