package scsi

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"lunar/internal/waits"
	"lunar/target/scsi/reservation"
)

// world is the server. Its event loop is the test.
type world struct {
	lu       *LogicalUnit
	sessions []*actor
	asked    int // functions
	answered int
	cleared  int                      // times that nothing but an ACA condition was left
	doing    string                   // the event that is being carried out
	names    map[*waits.Waiter]string // of those who wait
	queued   []string                 // by which events what the registrar has came to it
}

// waiter is waits.New with a name by which states are told apart.
func (w *world) waiter(name string, passed func()) *waits.Waiter {
	waiter := waits.New(passed)
	w.names[waiter] = name
	return waiter
}

// message is what was posted to a thread.
type message struct {
	about string
	run   func()
}

// newWorld is one in which all sessions are registered, and whoever preempts, preempts
// all others.
func newWorld(t testing.TB, script []string) *world {
	info := diskInfo()
	info.Size = 64 << 10
	lu, err := NewLogicalUnit(LUConfig{Name: "v", Store: infoStore{info}, Logger: quietLogger, Reservations: allRegistered()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{lu: lu, names: make(map[*waits.Waiter]string)}
	lu.registrar.mu.running = true // its goroutine is the test
	for i, text := range script {
		s := &actor{w: w, script: text}
		s.n = &Nexus{LU: lu, Initiator: portName(i), Target: "iqn.t", TargetTag: 1, Ports: func() []uint16 { return []uint16{1} }, Map: func() []uint64 { return []uint64{0} }}
		s.n.AwaitTasks, s.n.EndTasks = s.awaitTasks, s.endTasks
		lu.Attach(s.n)
		w.sessions = append(w.sessions, s)
	}
	return w
}

var quietLogger = testLogger(io.Discard)

func portName(i int) string { return reservation.PortName(fmt.Sprint("iqn.h", i), 1) }

func allRegistered() *reservation.State {
	s := new(reservation.State)
	for i := range 3 {
		from := reservation.Nexus{Initiator: portName(i), Target: "iqn.t", Port: 1}
		change, refusal := s.Apply(&reservation.Request{Action: reservation.Register, From: from, ServiceKey: 7})
		if refusal != nil {
			panic(refusal)
		}
		if i == 2 {
			change, refusal = change.Next.Apply(&reservation.Request{Action: reservation.Reserve, From: from, Key: 7, Type: reservation.WriteExclusiveAllRegistrants})
			if refusal != nil {
				panic(refusal)
			}
		}
		s = change.Next
	}
	return s
}

// events are what can happen next.
func (w *world) events() (all []message) {
	for i, s := range w.sessions {
		if len(s.script) > 0 && !s.lost {
			all = append(all, message{fmt.Sprintf("session %d: %c", i, s.script[0]), s.take})
		}
		if len(s.inbox) > 0 {
			m := s.inbox[0]
			all = append(all, message{fmt.Sprintf("session %d takes %q", i, m.about), func() { s.inbox = s.inbox[1:]; m.run() }})
		}
		for j, op := range s.ops {
			all = append(all, message{fmt.Sprintf("session %d: an operation ends", i), func() { s.ops = slices.Delete(s.ops, j, j+1); op.Done(op) }})
		}
		for _, t := range s.tasks {
			if t.gated {
				all = append(all, message{"the gate opens for " + t.name, func() { t.gated = false; w.lu.Execute(&t.c) }})
			}
		}
	}
	if len(w.queued) > 0 {
		all = append(all, message{"the registrar works", w.registers})
	}
	if len(all) == 0 && w.lu.tasks.watched.Load() { // who was told of an ACA condition clears it
		all = append(all, message{"CLEAR ACA", func() { w.lu.ClearACA(nil) }})
		if w.cleared++; w.cleared > 1 {
			return nil
		}
	} else {
		w.cleared = 0
	}
	return all
}

// registers has the registrar do the first that waits for it.
func (w *world) registers() {
	queue := &w.lu.registrar.mu.queue
	work := (*queue)[0]
	*queue, w.queued = (*queue)[1:], w.queued[1:]
	work()
}

// calm notes what has come to the registrar, and takes away what would hide circles or
// commands: time-outs and unit attentions.
func (w *world) calm() {
	for len(w.queued) < len(w.lu.registrar.mu.queue) {
		w.queued = append(w.queued, w.doing)
	}
	for _, t := range w.lu.atomics.turns {
		if t.patience != nil {
			t.patience.Stop()
		}
	}
	for _, s := range w.sessions {
		for s.n.attentions.pending.Load() {
			s.n.takeAttention()
		}
	}
}

// forget gives back the memory of a world that is left as it is.
func (w *world) forget() {
	for _, s := range w.sessions {
		for _, t := range slices.Concat(s.tasks, s.behind) {
			for i := range t.c.seg {
				if ref := t.c.seg[i].ref; ref != nil {
					ref.Release()
				}
			}
			if t.c.list != nil {
				t.c.list.Release()
			}
		}
	}
}

// unended tells what has not ended; empty if all has.
func (w *world) unended() string {
	var b strings.Builder
	for _, s := range w.sessions {
		for _, t := range slices.Concat(s.tasks, s.behind) {
			fmt.Fprintf(&b, "%s (dormant %v, aborted %v, running %d, awaiting %v) ", t.name, t.c.Dormant(), t.c.Aborted(), t.c.running, t.c.Awaiting())
		}
	}
	if w.asked != w.answered {
		fmt.Fprintf(&b, "%d functions ", w.asked-w.answered)
	}
	if len(w.lu.atomics.turns) > 0 || w.lu.tasks.watched.Load() {
		fmt.Fprintf(&b, "%d turns, task set watched %v", len(w.lu.atomics.turns), w.lu.tasks.watched.Load())
	}
	return b.String()
}

// fingerprint is the same for states that differ in nothing that matters.
func (w *world) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d%d%q|", w.asked, w.answered, w.queued)
	for _, s := range w.sessions {
		fmt.Fprintf(&b, "%s %v", s.script, s.lost)
		for _, m := range s.inbox {
			fmt.Fprint(&b, ",", m.about)
		}
		for _, op := range s.ops {
			fmt.Fprint(&b, ";", op.Kind)
		}
		for _, t := range slices.Concat(s.tasks, s.behind) {
			c := &t.c
			fmt.Fprint(&b, "/", t.name, t.gated, c.running, c.ending, c.aborted, c.Awaiting(), c.reads, c.turn)
			if c.place != nil {
				fmt.Fprint(&b, c.place.granted, c.place.Turn)
			}
			if turn, ok := c.feature.(*atomicTurn); ok {
				fmt.Fprint(&b, turn.state, slices.Index(w.lu.atomics.turns, turn))
			}
			if c.tail > c.head {
				fmt.Fprint(&b, c.at(c.head).state, c.at(c.head).phase, c.at(c.head).lock.taken)
			}
			if o, ok := c.feature.(*copyOperation); ok {
				fmt.Fprint(&b, "c", o.index, o.started, o.flushed, o.window.waiting)
			}
			if z, ok := c.feature.(*sanitizer); ok {
				fmt.Fprint(&b, "z", c.work.left, c.work.index, z.wiped, z.waiter != nil)
			}
			for _, waiter := range t.by {
				fmt.Fprint(&b, "<", w.names[waiter])
			}
		}
		b.WriteByte('|')
	}
	fmt.Fprint(&b, w.lu.tasks.watched.Load(), w.lu.state.Load().Sanitize != nil)
	for _, r := range w.lu.reservations.Load().Registrations() {
		fmt.Fprint(&b, r.Initiator)
	}
	return b.String()
}
