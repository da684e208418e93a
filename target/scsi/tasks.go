package scsi

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/taskset"
)

// taskSet is the logical unit's task set. Commands look at watched alone, which
// nobody writes while all are SIMPLE: those then run without being counted
// anywhere. An ORDERED command asks the nexuses for the tasks that they have.
type taskSet struct {
	watched atomic.Bool
	mu      struct {
		sync.Mutex
		set taskset.Set
	}
}

// place is a command's place in the task set.
type place struct {
	taskset.Command
	c *Command // nil once it has left; changes on its thread, under mu

	entering bool // enter is on the stack
	granted  bool // it is enabled
}

var attributes = [8]taskset.Attribute{Ordered: taskset.Ordered, HeadOfQueue: taskset.HeadOfQueue, ACA: taskset.ACA}

func (c *Command) newPlace() *place {
	p := &place{c: c, entering: true}
	p.Command = taskset.Command{
		Attribute: attributes[c.Attribute&7], Nexus: c.Nexus, NACA: c.hasNACA(), Owner: p, Turn: c.turn,
		Alone: c.Nexus.ReadOnly.Load(),
	}
	if c.row != nil {
		p.Class, p.Extent, p.Preempts = c.row.class, c.extent(), c.row.preempts()
	}
	return p
}

// enter takes the command into the task set. False says that it was refused, or
// that proceed follows.
func (lu *LogicalUnit) enter(c *Command) bool {
	if c.Attribute == ACA && restrictions(c.Nexus.restricted.Load())&c.row.restricted&restrictRelay != 0 {
		return true // the condition is where the unit is served
	}
	p, t := c.newPlace(), &lu.tasks
	t.mu.Lock()
	verdict := t.mu.set.Enter(&p.Command)
	c.turn = p.Turn
	t.watch()
	t.mu.Unlock()
	switch verdict {
	case taskset.ACAActive:
		c.FailStatus(ACAActive)
		return false
	case taskset.Busy:
		c.FailStatus(Busy)
		return false
	case taskset.NoACA:
		c.Fail(sense.InvalidMessageError)
		return false
	}
	c.place = p
	if p.Attribute == taskset.Ordered {
		lu.awaitOlder(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.entering, p.granted = false, p.granted || verdict == taskset.Enabled
	return p.granted
}

// watch mirrors the set's Watched. The caller holds mu.
func (t *taskSet) watch() { t.watched.Store(t.mu.set.Watched()) }

// awaitOlder has the nexuses tell when their tasks have ended that came before p.
// What came to the unit while the set was not watched has no turn: it is older than all
// that ask, in whatever order they do. What has come to a thread but not to the unit
// yet, as its initiator's limits hold it back, keeps a place ahead of p. Nobody waits
// for those who may only read: a read that has not ended may as well have come later.
func (lu *LogicalUnit) awaitOlder(p *place) {
	turn := p.Turn
	older := func(c *Command) bool {
		if c.row == nil && c.turn == (taskset.Turn{}) {
			c.turn = turn.Ahead()
		}
		return c.turn.Before(turn)
	}
	lu.mu.Lock()
	nexuses := slices.Collect(maps.Keys(lu.mu.nexuses))
	lu.mu.Unlock()
	p.c.Effort += len(nexuses)
	var left atomic.Int32
	left.Store(int32(len(nexuses)) + 1)
	done := func() {
		if left.Add(-1) == 0 {
			lu.tasks.change(func(s *taskset.Set) []*taskset.Command {
				if p.c == nil {
					return nil
				}
				return s.Settled(&p.Command)
			})
		}
	}
	for _, n := range nexuses {
		if n.AwaitTasks == nil || n != p.c.Nexus && n.ReadOnly.Load() {
			done()
			continue
		}
		n.AwaitTasks(older, done)
	}
	done()
}

// change makes a step of the set, and has the commands go on that are enabled by
// it. Any goroutine may call it.
func (t *taskSet) change(step func(*taskset.Set) []*taskset.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, enabled := range step(&t.mu.set) {
		p := enabled.Owner.(*place)
		if p.entering {
			p.granted = true
			continue
		}
		p.c.Port.Wake(p.c, p)
	}
	t.watch()
}

// Run implements Task: the command may run.
func (p *place) Run() {
	if c := p.c; c != nil { // else it has ended meanwhile
		p.granted = true
		c.Nexus.LU.proceed(c)
	}
}

// Dormant reports that the command waits for others in its task set, or until it is decided
// who serves its logical unit.
func (c *Command) Dormant() bool { return c.place != nil && !c.place.granted || c.Held() }

// exitTaskSet takes the command, which ends, out of its task set.
func (c *Command) exitTaskSet() {
	p := c.place
	c.place = nil
	c.Nexus.LU.tasks.change(func(s *taskset.Set) []*taskset.Command {
		p.c = nil
		return s.Remove(&p.Command)
	})
}

// failed follows CHECK CONDITION status: it makes an ACA condition, or ends it.
func (c *Command) failed() {
	if c.Nexus.LU == nil || c.Attribute != ACA && !c.hasNACA() || c.relayed() {
		return
	}
	p := c.newPlace()
	c.Nexus.LU.tasks.change(func(s *taskset.Set) []*taskset.Command { return s.Failed(&p.Command) })
}

// ClearACA ends the ACA condition of a nexus, with nil that of any (SAM-5 clause
// 7.4). Any goroutine may call it.
func (lu *LogicalUnit) ClearACA(n *Nexus) {
	lu.tasks.change(func(s *taskset.Set) []*taskset.Command {
		if n == nil {
			return s.Clear(nil)
		}
		return s.Clear(n)
	})
}
