package scheduler

import (
	"testing"

	"lunar/internal/arith"
	"lunar/scheduler/haechi"
)

// TestLimitIsRaised: nobody waits for what is owed to a lower limit of the past,
// however large the command was; a limit that is lowered makes nobody owe more.
func TestLimitIsRaised(t *testing.T) {
	limited := func(iops, bytes int64) Rule {
		return Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: iops, Bytes: bytes}}
	}
	a := newAlone(t, GateConfig{}, limited(1, 4096))
	q := a.open("iqn.a", 0)
	large, next := &Task{Cost: 256, Bytes: 1 << 20}, &Task{Cost: 1, Bytes: 4096}
	if !a.gate.Admit(q, large, a.now) || a.gate.Admit(q, next, a.now) {
		t.Fatal("expected that one command passes and the next waits")
	}
	if wake := a.gate.Wake() - a.now; wake < 255e9 {
		t.Fatalf("the second command waits %d ns, expected that the limits make it wait", wake)
	}
	a.apply(limited(12800, 50<<20))
	wake := a.gate.Wake() - a.now
	if wake > 11e6 || wake < 9e6 {
		t.Errorf("the second command waits %d ns more, expected what is owed at the new rate", wake)
	}
	a.apply(limited(1, 4096))
	if again := a.gate.Wake() - a.now; again > wake+11e6 {
		t.Errorf("the second command waits %d ns after the limit was lowered, before %d", again, wake)
	}
	a.apply(limited(12800, 50<<20))
	a.now += 11e6
	if a.gate.Next(a.now) != next {
		t.Error("the second command has not come to its turn")
	}
}

// TestLimitIsShared: queues under one limit that is always spent take turns, by
// their weights and classes and whatever their slots are.
func TestLimitIsShared(t *testing.T) {
	group, db := Rule{Group: "db", Limit: Rate{IOPS: 700}}, []string{"iqn.db"}
	for name, c := range map[string]struct {
		rules []Rule
		want  [3]int64
	}{
		"members of a group": {[]Rule{group}, [3]int64{700, 700, 700}},
		"weights":            {[]Rule{group, {Initiators: db, Weight: 3}}, [3]int64{1260, 420, 420}},
		"a large weight":     {[]Rule{group, {Initiators: db, Weight: 19}}, [3]int64{1900, 100, 100}},
		"classes":            {[]Rule{group, {Initiators: db, Class: High}, {Initiators: []string{"iqn.db2"}, Class: Low}}, [3]int64{1050, 700, 350}},
		"weights in a class": {[]Rule{group, {Initiators: db, Class: High}, {Initiators: []string{"iqn.db1"}, Weight: 2}}, [3]int64{1260, 560, 280}},
	} {
		for _, busy := range []bool{false, true} { // others use what the device has beside the limit
			a := newAlone(t, GateConfig{Window: 8}, c.rules...)
			queues := []*Queue{a.open("iqn.db", 0), a.open("iqn.db1", 0), a.open("iqn.db2", 0)}
			all := queues
			if busy {
				all = append([]*Queue{a.open("iqn.other", 0)}, queues...)
			}
			for range 3000 {
				a.step(10, 16, all...)
			}
			for i, q := range queues {
				if slack := 25 + c.want[i]/10; !busy || len(c.rules) < 3 {
					within(t, name+": "+q.flow.Initiator, q.Counters().Served, c.want[i], slack)
				}
			}
		}
	}
	a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.db*"}, Limit: Rate{IOPS: 700}})
	queues := []*Queue{a.open("iqn.db", 0), a.open("iqn.db", 1), a.open("iqn.db", 2)}
	for range 3000 {
		a.step(10, 16, queues...)
	}
	for i, q := range queues {
		within(t, "session "+string(rune('1'+i))+" of one initiator", q.Counters().Served, 700, 25)
	}
}

// TestNobodyIsOvertaken: who comes when a limit has just been paid back does not
// take what another waits for.
func TestNobodyIsOvertaken(t *testing.T) {
	a := newAlone(t, GateConfig{}, Rule{Group: "db", Limit: Rate{IOPS: 100}, Burst: Rate{IOPS: 1}})
	first, other := a.open("iqn.db1", 0), a.open("iqn.db2", 0)
	for a.gate.Admit(first, &Task{Cost: 1}, 0) {
		continue
	}
	at := a.gate.Wake()
	if a.gate.Admit(other, &Task{Cost: 1}, at) {
		t.Error("expected that who waits longer has its turn")
	}
	if next := a.gate.Next(at); next == nil || next.Queue() != first {
		t.Error("expected the command that waited")
	}
}

// TestLimitOutlivesSessions: nobody gets more by logging out and in again, and
// what is kept for that goes when it does not matter any more.
func TestLimitOutlivesSessions(t *testing.T) {
	a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.db*"}, Limit: Rate{IOPS: 100, Bytes: 1 << 20}, Burst: Rate{IOPS: 10, Bytes: 1 << 20}})
	passed := 0
	for range 2000 { // two seconds of sessions
		q := a.open("iqn.db1", uint64(a.now/ms%3))
		for task := (&Task{Cost: 1, Bytes: 4096}); ; task = (&Task{Cost: 1, Bytes: 4096}) {
			if !a.gate.Admit(q, task, a.now) {
				a.gate.Cancel(task, a.now)
				break
			}
			a.gate.Done(task, a.now)
			passed++
		}
		a.gate.Close(q, a.now)
		a.now += ms
	}
	if passed > 200+10+1 || passed < 200 {
		t.Errorf("found %d commands in 2 s of a limit of 100 per second", passed)
	}
	var r GateReport
	if a.gate.Report(&r, a.now); len(a.gate.entities) != 1 {
		t.Errorf("found %d entities, expected the one that owes something", len(a.gate.entities))
	}
	a.now += 200 * ms
	if a.gate.Report(&r, a.now); len(a.gate.entities) != 0 || len(a.gate.byKey) != 0 || len(r.Servers) != 0 {
		t.Errorf("found %d entities and %d servers, expected none", len(a.gate.entities), len(r.Servers))
	}
	for i := range 2 * maxIndebted {
		q, task := a.open("iqn.db"+string(rune('a'+i)), 0), &Task{Cost: 100}
		a.gate.Admit(q, task, a.now)
		a.gate.Done(task, a.now)
		a.gate.Close(q, a.now)
	}
	if n := len(a.gate.entities); n != maxIndebted {
		t.Errorf("found %d entities that owe something, expected %d", n, maxIndebted)
	}
}

// TestNewcomers: an initiator that comes to another thread has not its whole
// limit there, and has its part of it as soon as it was welcomed.
func TestNewcomers(t *testing.T) {
	const threads, rate = 4, 10_000
	c := NewCoordinator(CoordinatorConfig{Threads: threads, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 40_000}}})
	disk := &Device{Name: "disk"}
	var sides []*alone
	var queues []*Queue
	var gates []*Gate
	for thread := range threads {
		a := &alone{t: t, coord: c, disk: disk, outstanding: map[*Queue]int{}, gate: NewGate(thread, GateConfig{Threads: threads})}
		a.apply(Rule{Initiators: []string{"*"}, Reservation: Rate{IOPS: 1000}, Limit: Rate{IOPS: rate}})
		sides, gates, queues = append(sides, a), append(gates, a.gate), append(queues, nil)
	}
	exchange(c, 0, gates...)
	var served [400]int64
	for step := range served {
		now := int64(step) * ms
		if step%60 == 0 && step/60 < threads {
			queues[step/60] = sides[step/60].open("iqn.a", 0)
		}
		if step%200 == 0 && step > 0 {
			exchange(c, now, gates...)
		} else if step%20 == 0 {
			welcome(c, now, gates...)
		}
		for i, a := range sides {
			if a.now = now; queues[i] != nil {
				served[step] += int64(len(a.serve(1000, 64, queues[i])))
			}
		}
	}
	for from := range served {
		for to := from; to < len(served); to++ {
			if n, most := arith.Sum(served[from:to+1]), int64(to-from+1)*rate/1000+rate/100+rate/200+threads; n > most {
				t.Fatalf("from %d to %d ms: found %d commands, expected at most %d", from, to, n, most)
			}
		}
	}
	if n := arith.Sum(served[20:60]); n < 40*rate/1000*95/100 {
		t.Errorf("on the first thread, once welcomed: found %d commands in 40 ms", n)
	}
}

// welcome is an exchange of reports between two redistributions.
func welcome(c *Coordinator, now int64, gates ...*Gate) {
	for _, g := range gates {
		var r GateReport
		g.Report(&r, now)
		c.Collect(&r)
	}
	c.Check(now)
	grants := make([]GateGrant, len(gates))
	if c.Welcome(now, grants) {
		for i, g := range gates {
			g.Grant(&grants[i], now)
		}
	}
}
