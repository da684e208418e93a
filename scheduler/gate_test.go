package scheduler

import (
	"math"
	"slices"
	"testing"

	"lunar/scheduler/haechi"
)

// alone is a gate on the only thread, with its coordinator, under a policy.
type alone struct {
	t     *testing.T
	gate  *Gate
	disk  *Device
	coord *Coordinator
	now   int64

	device      []*Task // under way, in order
	outstanding map[*Queue]int
}

const ms = int64(1e6)

func newAlone(t *testing.T, config GateConfig, rules ...Rule) *alone {
	t.Helper()
	c := NewCoordinator(CoordinatorConfig{Threads: 1, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 10_000}}})
	a := &alone{t: t, coord: c, disk: &Device{Name: "disk"}, outstanding: map[*Queue]int{}, gate: NewGate(0, config)}
	a.apply(rules...)
	return a
}

func (a *alone) apply(rules ...Rule) {
	a.t.Helper()
	p, err := NewPolicy(rules, []Group{{"db", []string{"iqn.db*"}}}, Cost{})
	if err != nil {
		a.t.Fatal(err)
	}
	a.gate.Apply(p, a.now)
}

func (a *alone) open(initiator string, lun uint64) *Queue {
	return a.gate.Open(Flow{Initiator: initiator, Target: "iqn.target", LUN: lun}, a.disk, a.now)
}

// step is one millisecond, and the redistribution if it is due.
func (a *alone) step(n, depth int, queues ...*Queue) (served []*Task) {
	served = a.serve(n, depth, queues...)
	if a.now >= a.coord.Deadline() {
		exchange(a.coord, a.now, a.gate)
	}
	return served
}

// serve is one millisecond of a device that serves n commands in it, one after
// the other, for initiators that keep depth commands outstanding on each queue.
func (a *alone) serve(n, depth int, queues ...*Queue) (served []*Task) {
	a.issue(depth, queues)
	for len(served) < n && len(a.device) > 0 {
		t := a.device[0]
		a.device = a.device[1:]
		a.gate.Done(t, a.now)
		a.outstanding[t.Queue()]--
		served = append(served, t)
		a.issue(depth, queues)
	}
	a.now += ms
	a.gate.Tick(a.now)
	return served
}

// issue brings the queues to their depth and what may run to the device.
func (a *alone) issue(depth int, queues []*Queue) {
	for t := a.gate.Next(a.now); t != nil; t = a.gate.Next(a.now) {
		a.device = append(a.device, t)
	}
	for _, q := range queues {
		for ; a.outstanding[q] < depth; a.outstanding[q]++ {
			if t := (&Task{Cost: 1, Bytes: 4096}); a.gate.Admit(q, t, a.now) {
				a.device = append(a.device, t)
			}
		}
	}
}

// exchange is one redistribution over gates.
func exchange(c *Coordinator, now int64, gates ...*Gate) {
	grants := make([]GateGrant, len(gates))
	for _, g := range gates {
		var r GateReport
		g.Report(&r, now)
		c.Collect(&r)
	}
	c.Redistribute(now, grants)
	for i, g := range gates {
		g.Grant(&grants[i], now)
	}
}

func TestGateWithoutRulesPasses(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 1})
	q := a.open("iqn.a", 0)
	for range 10 {
		task := &Task{Cost: 1}
		if !a.gate.Admit(q, task, 0) {
			t.Fatal("found a command held back, expected none without rules")
		}
		defer a.gate.Done(task, 0)
	}
	if a.gate.InFlight() != 0 || a.gate.Active() {
		t.Error("expected nothing to be counted without rules")
	}
}

// TestLimitInEveryWindow: what a limited initiator gets in any 10 ms is at
// most the rate, the burst and the command that overdraws.
func TestLimitInEveryWindow(t *testing.T) {
	for name, burst := range map[string]int64{"default": 0, "of 100": 100} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 5000}, Burst: Rate{IOPS: burst}})
			q := a.open("iqn.a", 0)
			var perMs []int
			for range 1000 {
				perMs = append(perMs, len(a.step(1000, 10, q)))
			}
			allowed := 50 + int(max(burst, 50)) + 1
			total := 0
			for i, n := range perMs {
				total += n
				if i < 10 {
					continue
				}
				window := 0
				for _, m := range perMs[i-9 : i+1] {
					window += m
				}
				if window > allowed {
					t.Fatalf("ms %d: found %d in 10 ms, expected at most %d", i, window, allowed)
				}
				if window == 0 {
					t.Fatalf("ms %d: found a stall", i)
				}
			}
			if total < 4990 || total > 5000+int(max(burst, 50))+1 {
				t.Errorf("found %d in a second, expected the limit of 5000 and at most the burst", total)
			}
		})
	}
}

// TestByteLimit: a byte limit counts bytes, over two logical units.
func TestByteLimit(t *testing.T) {
	a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.a"}, Limit: Rate{Bytes: 4096 * 2000}})
	x, y := a.open("iqn.a", 0), a.open("iqn.a", 1)
	total := 0
	for range 1000 {
		total += len(a.step(1000, 10, x, y))
	}
	if total < 1990 || total > 2000+20+2 {
		t.Errorf("found %d commands of 4 KiB, expected 2000", total)
	}
	held := a.gate.Explain("iqn.a", a.now)
	if len(held) != 2 || held[0].Effects[0].HeldBytes < 900*ms || held[0].Effects[0].HeldIOPS != 0 {
		t.Errorf("found %+v, expected both held back by bytes nearly all the time", held)
	}
}

// TestReservationIsMet: two noisy initiators beside a reserved one, a device of
// 10 commands per ms.
func TestReservationIsMet(t *testing.T) {
	for _, lead := range []int64{0, -1} {
		a := newAlone(t, GateConfig{Window: 16, Lead: lead}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 6000}})
		reserved, noisy, other := a.open("iqn.r", 0), a.open("iqn.n", 0), a.open("iqn.o", 0)
		exchange(a.coord, a.now, a.gate)
		for range 5000 {
			a.step(10, 32, noisy, reserved, other)
		}
		for i, p := range a.coord.Attainment("initiator iqn.r") {
			if p.Served < 5950 {
				t.Errorf("lead %d, period %d: found %+v, expected 6000 served", lead, i, p)
			}
		}
		if n := len(a.coord.Attainment("initiator iqn.r")); n < 4 {
			t.Errorf("found %d periods", n)
		}
		r, n, o := reserved.Counters().Served, noisy.Counters().Served, other.Counters().Served
		if n < o*98/100 || o < n*98/100 || n+o+r != 50_000 {
			t.Errorf("lead %d: found %d, %d and %d, expected equal shares of the others and 50000 in all", lead, r, n, o)
		}
	}
}

// TestNobodyStalls: with paced reservations the others are served all the time.
func TestNobodyStalls(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 16}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 9000}})
	reserved, other := a.open("iqn.r", 0), a.open("iqn.o", 0)
	last := int64(0)
	for range 3000 {
		for _, task := range a.step(10, 32, reserved, other) {
			if task.Queue() == other {
				last = a.now
			}
		}
		if a.now-last > 100*ms {
			t.Fatalf("at %d ms: found nothing served since %d ms", a.now/ms, last/ms)
		}
	}
}

// TestHierarchy: the limits of group, initiator and nexus hold together.
func TestHierarchy(t *testing.T) {
	lun := uint64(1)
	a := newAlone(t, GateConfig{},
		Rule{Name: "group", Group: "db", Limit: Rate{IOPS: 3000}},
		Rule{Name: "each", Initiators: []string{"iqn.db*"}, Limit: Rate{IOPS: 2000}},
		Rule{Name: "unit", Initiators: []string{"iqn.db1"}, LUN: &lun, Limit: Rate{IOPS: 500}})
	q10, q11, q2 := a.open("iqn.db1", 0), a.open("iqn.db1", 1), a.open("iqn.db2", 0)
	for range 2000 {
		a.step(1000, 10, q10, q11, q2)
	}
	n10, n11, n2 := q10.Counters().Served, q11.Counters().Served, q2.Counters().Served
	within(t, "group", n10+n11+n2, 6000, 40)
	if n11 > 1006 || n10+n11 > 4023 || n2 > 4023 {
		t.Errorf("found %d, %d and %d, expected at most 1000 for the unit and 4000 for each", n10, n11, n2)
	}
}

func within(t *testing.T, what string, found, expected, slack int64) {
	t.Helper()
	if found < expected-slack || found > expected+slack {
		t.Errorf("%s: found %d, expected %d ± %d", what, found, expected, slack)
	}
}

// TestWeights: who has no rule shares by weight with who has.
func TestWeights(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 8}, Rule{Initiators: []string{"iqn.heavy"}, Weight: 3})
	heavy, light := a.open("iqn.heavy", 0), a.open("iqn.light", 0)
	for range 1000 {
		a.step(10, 16, heavy, light)
	}
	within(t, "heavy", heavy.Counters().Served, 7500, 75)
	within(t, "light", light.Counters().Served, 2500, 75)
}

// TestLiveChange: a new limit holds from the next command on, and waiting
// commands are neither lost nor run twice.
func TestLiveChange(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 8}, Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 1000}})
	q := a.open("iqn.a", 0)
	seen := map[*Task]bool{}
	run := func(milliseconds int) (n int64) {
		for range milliseconds {
			for _, task := range a.step(10, 4, q) {
				if seen[task] {
					t.Fatal("found a command twice")
				}
				seen[task] = true
				n++
			}
		}
		return n
	}
	within(t, "before", run(1000), 1000, 12)
	a.apply(Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 4000}})
	within(t, "raised", run(1000), 4000, 45)
	a.apply(Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 500}})
	within(t, "lowered", run(1000), 500, 10)
	a.apply()
	for q.Pending() > 0 {
		if task := a.gate.Next(a.now); task == nil || seen[task] {
			t.Fatal("found commands stuck without rules, or a command twice")
		}
	}
}

func TestCancelAndHit(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 1}, Rule{Initiators: []string{"iqn.a"}, Reservation: Rate{IOPS: 100}})
	q := a.open("iqn.a", 0)
	exchange(a.coord, 0, a.gate)
	a.gate.Tick(0)
	first, second, third := &Task{Cost: 1}, &Task{Cost: 1}, &Task{Cost: 1}
	if !a.gate.Admit(q, first, 0) || a.gate.Admit(q, second, 0) || a.gate.Admit(q, third, 0) {
		t.Fatal("expected a window of one command")
	}
	a.gate.Cancel(second, 0)
	left := q.Engine().Residual()
	first.Hit = true
	a.gate.Done(first, 0)
	if q.Engine().Residual() != left+1 || first.Grant() != haechi.GrantReserved {
		t.Errorf("found %d tokens after a hit, expected %d", q.Engine().Residual(), left+1)
	}
	if got := a.gate.Next(0); got != third || a.gate.Next(0) != nil {
		t.Error("expected the third command")
	}
	a.gate.Done(third, 0)
	c := q.Counters()
	if c.Offered != 3 || c.Served != 2 || c.Cancelled != 1 || c.Hits != 1 || a.gate.Waiting() != 0 || a.gate.InFlight() != 0 {
		t.Errorf("found %+v", c)
	}
}

// TestWake: a held command is due exactly when its limit lets it.
func TestWake(t *testing.T) {
	a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 100}, Burst: Rate{IOPS: 1}})
	q := a.open("iqn.a", 0)
	if a.gate.Wake() != math.MaxInt64 {
		t.Error("expected no time to wait for")
	}
	for n := 0; a.gate.Admit(q, &Task{Cost: 1}, 0); n++ {
		if n > 2 {
			t.Fatal("found no limit")
		}
	}
	for range 5 {
		at := a.gate.Wake()
		if a.gate.Next(at-1) != nil || a.gate.Next(at) == nil {
			t.Fatalf("expected the command at %d", at)
		}
		a.gate.Enqueue(q, at)
	}
}

// Enqueue keeps a queue of a test from running empty.
func (g *Gate) Enqueue(q *Queue, now int64) { g.Admit(q, &Task{Cost: 1}, now) }

// TestTwoThreads: an initiator's limit and reservation hold over its sessions
// on two threads, wherever the traffic is.
func TestTwoThreads(t *testing.T) {
	c := NewCoordinator(CoordinatorConfig{Threads: 2, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 40_000}}})
	p, err := NewPolicy([]Rule{
		{Name: "limited", Initiators: []string{"iqn.l"}, Limit: Rate{IOPS: 4000}},
		{Name: "reserved", Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 8000}},
	}, nil, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	var sides []*alone
	disk := &Device{Name: "disk"}
	var queues [][]*Queue
	for thread := range 2 {
		a := &alone{t: t, coord: c, disk: disk, outstanding: map[*Queue]int{}, gate: NewGate(thread, GateConfig{Window: 16})}
		a.gate.Apply(p, 0)
		sides = append(sides, a)
		queues = append(queues, []*Queue{a.open("iqn.l", 0), a.open("iqn.r", 0), a.open("iqn.n", 0)})
	}
	counts := [3]int64{}
	for interval := range 25 {
		exchange(c, int64(interval)*200*ms, sides[0].gate, sides[1].gate)
		for thread, a := range sides {
			wanted := queues[thread]
			if thread == 1 && interval%10 < 5 { // the limited one moves away
				wanted = wanted[1:]
			}
			for range 200 {
				for _, task := range a.serve(20, 48, wanted...) {
					counts[slices.Index(queues[thread], task.Queue())]++
				}
			}
		}
	}
	if counts[0] > 5*4000+100 || counts[0] < 16_000 {
		t.Errorf("limited: found %d in 5 s, expected 16000 to 20000", counts[0])
	}
	if counts[1] < 5*8000*99/100 {
		t.Errorf("reserved: found %d in 5 s, expected 40000", counts[1])
	}
	within(t, "all", counts[0]+counts[1]+counts[2], 200_000, 0)
}

// TestUnusedReservationGoesToOthers: who is idle gives its reservation back,
// which the monitor converts, and gets it whole in the next period.
func TestUnusedReservationGoesToOthers(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 8, Mode: HardPool, Batch: 10}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 8000}})
	reserved, other := a.open("iqn.r", 0), a.open("iqn.o", 0)
	for a.now < 3000*ms {
		a.step(10, 16, other)
		var r GateReport
		a.gate.Report(&r, a.now)
		a.coord.Collect(&r)
		a.coord.Check(a.now)
	}
	if n := other.Counters().Served; n < 3*7000 {
		t.Errorf("found %d served of 30000 beside an idle reservation of 24000", n)
	}
	before := reserved.Counters().Served
	for a.now < 4000*ms {
		a.step(10, 16, other, reserved)
	}
	if n := reserved.Counters().Served - before; n < 7800 {
		t.Errorf("found %d served of a reservation of 8000", n)
	}
}

// TestHardPoolBoundsThePeriod: with a hard pool a period dispatches at most
// the capacity and what each initiator fetched too much, on a device that
// could do twice as much.
func TestHardPoolBoundsThePeriod(t *testing.T) {
	const batch, window = 10, 8
	a := newAlone(t, GateConfig{Window: window, Mode: HardPool, Batch: batch}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 3000}})
	queues := []*Queue{a.open("iqn.r", 0), a.open("iqn.a", 0), a.open("iqn.b", 0)}
	exchange(a.coord, 0, a.gate)
	for range 4 {
		capacity, served := a.coord.Monitor(a.disk).Capacity(), int64(0)
		for range 1000 {
			served += int64(len(a.step(20, 16, queues...)))
		}
		if most := capacity + int64(len(queues))*(batch+window); served > most || served < capacity*95/100 {
			t.Errorf("found %d in a period, expected nearly %d and at most %d", served, capacity, most)
		}
	}
}

// TestWhoGoesPays: an initiator that comes anew for each large command, of which the first token has
// all of it served, gets no more of a hard pool than the pool has.
func TestWhoGoesPays(t *testing.T) {
	const cost, window = 256, 8
	a := newAlone(t, GateConfig{Window: window, Mode: HardPool, Batch: 1}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 3000}})
	stays := a.open("iqn.r", 0)
	exchange(a.coord, 0, a.gate)
	capacity, served := a.coord.Monitor(a.disk).Capacity(), int64(0)
	for range 1000 {
		q := a.open("iqn.a", 0)
		task := &Task{Cost: cost, Bytes: cost * 4096}
		if a.gate.Admit(q, task, a.now) {
			served += cost
			a.gate.Done(task, a.now)
		} else {
			a.gate.Cancel(task, a.now)
		}
		a.gate.Close(q, a.now)
		a.now += ms / 2
	}
	if served < cost || served > capacity+cost {
		t.Errorf("found %d tokens in half a period, of %d in all of it", served, capacity)
	}
	a.gate.Close(stays, a.now)
}

// TestWhoReturnsHasUsed: an initiator that goes and comes again has no more of its reservation than what
// is left of the period's.
func TestWhoReturnsHasUsed(t *testing.T) {
	const reservation = 3000
	a := newAlone(t, GateConfig{Window: 8, Mode: HardPool, Batch: 1},
		Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: reservation}}, Rule{Initiators: []string{"iqn.s"}, Reservation: Rate{IOPS: 10_000 - reservation}})
	stays, q := a.open("iqn.s", 0), a.open("iqn.r", 0)
	exchange(a.coord, 0, a.gate)
	for range 3 {
		served := 0
		for range 200 {
			for range 5 {
				served += len(a.step(200, 32, q))
			}
			for _, task := range a.device {
				a.gate.Done(task, a.now)
			}
			for q.tasks.length > 0 {
				a.gate.Cancel(q.tasks.head, a.now)
			}
			a.device = nil
			a.gate.Close(q, a.now)
			delete(a.outstanding, q)
			q = a.open("iqn.r", 0)
		}
		if served > reservation*11/10 {
			t.Errorf("found %d commands in a period, of %d that are reserved", served, reservation)
		}
	}
	a.gate.Close(stays, a.now)
}

// TestQueueThatRanEmpty: its next command is judged when it comes, whatever the
// queue was before, and passes at once if nothing else waits.
func TestQueueThatRanEmpty(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 1, Lead: ms}, Rule{Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 100}})
	a.step(0, 0)
	other, promised := a.open("iqn.n", 0), a.open("iqn.r", 0)
	issue := func(q *Queue) *Task {
		task := &Task{Cost: 1}
		if a.gate.Admit(q, task, a.now) {
			t.Fatal("expected a window of one command")
		}
		return task
	}
	next := func() *Task {
		a.gate.Done(a.device[0], a.now)
		a.device[0] = a.gate.Next(a.now)
		return a.device[0]
	}
	first := &Task{Cost: 1}
	if !a.gate.Admit(promised, first, a.now) {
		t.Fatal("expected the first command to pass")
	}
	a.device = []*Task{first}
	for promised.Engine().Reserved() {
		issue(promised)
		next()
	}
	normal := issue(promised)
	if next() != normal || normal.Grant() == haechi.GrantReserved {
		t.Fatalf("found grant %d, expected a normal one until the next reservation token is due", normal.Grant())
	}
	for range 20 {
		a.now += ms
		a.gate.Tick(a.now)
	}
	for range 5 {
		issue(other)
	}
	last := issue(promised)
	if got := next(); got != last || last.Grant() != haechi.GrantReserved {
		t.Errorf("found a command of %s with grant %d, expected the reserved one first", got.Queue().flow.Initiator, got.Grant())
	}
	for a.gate.Waiting() > 0 {
		next()
	}
	a.gate.Done(a.device[0], a.now)
	for _, q := range []*Queue{other, promised, other} {
		task := &Task{Cost: 1}
		if !a.gate.Admit(q, task, a.now) {
			t.Fatalf("%s: expected a command to pass while none waits", q.flow.Initiator)
		}
		a.gate.Done(task, a.now)
	}
}

// TestGateHurries: time alone matters only while somebody has a reservation, or waits.
func TestGateHurries(t *testing.T) {
	classes := Rule{Name: "classes", Initiators: []string{"*"}, Class: High}
	a := newAlone(t, GateConfig{Window: 1}, classes)
	expect := func(when string, want bool) {
		t.Helper()
		if got := a.gate.Hurried(); got != want {
			t.Errorf("%s it is %v that the gate hurries, expected %v", when, got, want)
		}
	}
	q := a.open("iqn.db1", 0)
	expect("with classes alone", false)
	a.issue(1, []*Queue{q})
	expect("with a command under way", false)
	a.issue(2, []*Queue{q})
	expect("while a command waits", true)
	a.serve(2, 0, q)
	expect("after it", false)
	a.apply(classes, Rule{Name: "promise", Initiators: []string{"iqn.db1"}, Reservation: Rate{IOPS: 1000}})
	expect("with a reservation", true)
	a.gate.Close(q, a.now)
	for range 1200 {
		a.step(0, 0)
	}
	expect("when the period is over in which who has it has gone", false)
}
