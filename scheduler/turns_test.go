package scheduler

import (
	"testing"
)

// threaded is an event thread that serves commands of step ns each: of first without
// end, and of second when it goes before that.
type threaded struct {
	*alone
	turns         *Turns
	first, second *Queue
	step          int64
	had           map[*Queue]int64
}

func newThreaded(t *testing.T, rules ...Rule) *threaded {
	a := newAlone(t, GateConfig{Turn: 20_000}, rules...)
	th := &threaded{alone: a, turns: a.gate.Turns(), step: 2000, had: map[*Queue]int64{}}
	th.first, th.second = a.open("iqn.first", 0), a.open("iqn.second", 0)
	return th
}

// command runs one of a queue.
func (th *threaded) command(q *Queue) {
	th.turns.Serve(q, th.now)
	th.now += th.step
	th.had[q] += th.step
}

// pass serves n commands of first, with as many of second at a time as it has ready.
func (th *threaded) pass(n int, ready func() int) {
	th.turns.Begin(th.now)
	for range n {
		th.command(th.first)
		if !th.turns.Due(th.now) {
			continue
		}
		if th.turns.Prior(th.second) {
			for range ready() {
				th.command(th.second)
			}
		}
		th.turns.Resumed(th.now)
	}
	th.turns.End(th.now)
}

var (
	hasReserved = Rule{Name: "reserved", Initiators: []string{"iqn.second"}, Reservation: Rate{IOPS: 10_000}}
	hasWeight   = Rule{Name: "weight", Initiators: []string{"iqn.second"}, Weight: 3}
	isUrgent    = Rule{Name: "urgent", Initiators: []string{"iqn.second"}, Class: Urgent}
)

// TestTurnsInterrupt: who holds a reservation token, or is urgent, goes first once the
// turn of the other is over, however much it has had.
func TestTurnsInterrupt(t *testing.T) {
	for name, rule := range map[string]Rule{"reserved": hasReserved, "urgent": isUrgent} {
		th := newThreaded(t, rule)
		if !th.gate.Promised() {
			t.Errorf("%s: expected it to be promised something", name)
		}
		th.turns.Begin(th.now)
		for range 10 {
			th.command(th.second)
		}
		th.command(th.first)
		th.now += th.turns.Length()
		if due := th.turns.Due(th.now); !due || !th.turns.Prior(th.second) || th.turns.Prior(th.first) {
			t.Errorf("%s: due %v, expected that second goes before first, and first before nobody", name, due)
		}
	}
}

// TestTurnsLast: nobody interrupts before a turn is over, and the next one is whole.
func TestTurnsLast(t *testing.T) {
	th := newThreaded(t, hasReserved)
	th.turns.Begin(th.now)
	for range 2 {
		began := th.now
		for th.command(th.first); !th.turns.Due(th.now); th.command(th.first) {
		}
		if took := th.now - began; took != th.turns.Length() {
			t.Errorf("a turn took %d ns, expected %d", took, th.turns.Length())
		}
		th.command(th.second)
		th.turns.Resumed(th.now)
	}
}

// TestTurnsShareByWeight: without tokens a queue goes first until it has had its part of
// the thread, and one that has rested has no claim to what it left.
func TestTurnsShareByWeight(t *testing.T) {
	for _, tt := range []struct {
		rules []Rule
		part  float64
	}{{nil, 0.5}, {[]Rule{hasWeight}, 0.75}} {
		th := newThreaded(t, tt.rules...)
		th.pass(1000, func() int { return 0 })
		clear(th.had)
		th.pass(10_000, func() int { return 256 })
		part := float64(th.had[th.second]) / float64(th.had[th.first]+th.had[th.second])
		if part > tt.part+0.01 || part < tt.part-0.2 { // it is not asked more often than once in weighTurns
			t.Errorf("rules %+v: second had %.3f of the thread, expected up to %.2f", tt.rules, part, tt.part)
		}
	}
}

// TestTurnsOfOneInitiator: the queues of an initiator are charged together, and do not
// interrupt each other.
func TestTurnsOfOneInitiator(t *testing.T) {
	th := newThreaded(t)
	other := th.open("iqn.first", 1)
	th.turns.Begin(th.now)
	th.command(th.first)
	th.now += th.turns.Length()
	if !th.turns.Due(th.now) || th.turns.Prior(other) || !th.turns.Prior(th.second) {
		t.Error("expected that second alone goes before first")
	}
}

// TestWeightsAreAskedLess: who has no token, but has had less, goes first after
// weighTurns turns, and who has one after each.
func TestWeightsAreAskedLess(t *testing.T) {
	th := newThreaded(t, hasReserved)
	third := th.open("iqn.third", 0)
	th.turns.Begin(th.now)
	var asked, reserved int
	const turns = 3 * weighTurns
	for range turns {
		for th.command(th.first); !th.turns.Due(th.now); th.command(th.first) {
		}
		if th.turns.Prior(third) {
			asked++
		}
		if th.turns.Prior(th.second) {
			reserved++
		}
		th.turns.Resumed(th.now)
	}
	if asked != turns/weighTurns || reserved != turns {
		t.Errorf("in %d turns, by weight %d times and by a token %d times, expected %d and %d", turns, asked, reserved, turns/weighTurns, turns)
	}
}

// TestPromisedAreCounted: rules that come and go, and queues.
func TestPromisedAreCounted(t *testing.T) {
	th := newThreaded(t, hasReserved)
	th.apply(hasWeight)
	if th.gate.Promised() {
		t.Error("promised by a rule with a weight alone")
	}
	th.apply(isUrgent)
	th.gate.Close(th.first, th.now)
	if !th.gate.Promised() {
		t.Error("expected a promise: there is somebody urgent")
	}
	th.gate.Close(th.second, th.now)
	if th.gate.Promised() {
		t.Error("promised to nobody")
	}
}

// TestReservedPassThoseThatWait: a reserved command runs at once although others wait
// that could run, and not before reserved ones.
func TestReservedPassThoseThatWait(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 2}, Rule{Name: "db", Initiators: []string{"iqn.db*"}, Reservation: Rate{IOPS: 1000}})
	hog, db, other := a.open("iqn.hog", 0), a.open("iqn.db1", 0), a.open("iqn.db2", 0)
	var tasks [5]Task
	for i := range tasks {
		tasks[i].Cost = 1
	}
	a.gate.Admit(hog, &tasks[0], a.now)
	a.gate.Admit(hog, &tasks[1], a.now)
	a.gate.Admit(hog, &tasks[2], a.now) // waits
	a.gate.Done(&tasks[0], a.now)
	if !a.gate.Admit(db, &tasks[3], a.now) {
		t.Fatal("a reserved command waits behind one that is not")
	}
	a.gate.Admit(db, &tasks[4], a.now) // waits for the window
	a.gate.Done(&tasks[1], a.now)
	if late := (&Task{Cost: 1}); a.gate.Admit(other, late, a.now) {
		t.Error("a reserved command runs before one that has waited")
	}
}
