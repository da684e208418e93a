package nodes

import (
	"fmt"
	"testing"

	"lunar/internal/arith"
	"lunar/scheduler"
)

// local is a node's coordinator with one event thread, which has one initiator.
type local struct {
	coord *scheduler.Coordinator
	node  Node
	now   int64
	disk  *scheduler.Device
	grant []scheduler.GateGrant

	offered, served, queued int64
}

const (
	reserved = 1800
	limited  = 2000
	pool     = "pool"
)

func isPool(device string) bool { return device == pool }

func newLocal(n int64) *local {
	l := &local{
		coord: scheduler.NewCoordinator(scheduler.CoordinatorConfig{Threads: 1, Above: true, Foreign: isPool}),
		node:  Node{Shared: isPool}, disk: &scheduler.Device{Name: pool}, grant: make([]scheduler.GateGrant, 1),
	}
	l.coord.SetNodes(n)
	return l
}

// collect has the thread report, with what was served of what was asked for in the interval.
// The rest waits.
func (l *local) collect(asked, served int64) {
	l.queued = asked - served
	l.served += served
	l.offered = max(l.offered, l.served+l.queued)
	l.coord.Collect(&scheduler.GateReport{Servers: []scheduler.ServerReport{{Device: l.disk, Number: 1, Done: l.served, Entities: []scheduler.EntityReport{{
		Entity: "initiator a", Number: 2, Level: scheduler.InitiatorLevel, Root: true, Reservation: reserved, Limit: limited,
		Offered: l.offered, Served: l.served, Queued: l.queued, Backlogged: l.queued > 0,
	}}}}})
}

// share is what the thread has of the limit, millionths; reservation its R-tokens.
func (l *local) share() (share, reservation int64) {
	for _, s := range l.grant[0].Shares {
		share = s.Share
	}
	for _, s := range l.grant[0].Servers {
		for _, e := range s.Entities {
			reservation += e.Reserved
		}
	}
	return share, reservation
}

// lab is some nodes whose messages get lost as a test says.
type lab struct {
	t      *testing.T
	now    int64
	nodes  map[string]*local
	living []string
	cut    map[string]bool  // from the controller
	ahead  map[string]int64 // of clocks; "" is the controller's
	c      *Controller
}

func newLab(t *testing.T, n int) *lab {
	b := &lab{t: t, nodes: map[string]*local{}, cut: map[string]bool{}, ahead: map[string]int64{}, c: NewController(Config{Term: 1})}
	for i := range n {
		name := fmt.Sprint("n", i)
		b.living, b.nodes[name] = append(b.living, name), newLocal(int64(n))
	}
	return b
}

// interval has the nodes serve what they may of what they are asked for, and the controller, if
// there is one, deal.
func (b *lab) interval(asked map[string]int64) {
	for _, name := range b.living {
		l := b.nodes[name]
		share, _ := l.share()
		l.collect(asked[name], min(asked[name], arith.MulDiv(limited, share, scheduler.Whole)/intervals))
	}
	b.now += Interval
	clock := b.now + b.ahead[""]
	for _, name := range b.living {
		l := b.nodes[name]
		if l.now = b.now + b.ahead[name]; b.c != nil && !b.cut[name] {
			a := b.c.Ask(name)
			answer, err := l.node.Answer(a.Append(nil), l.now, l.coord.Report)
			if err == nil {
				err = b.c.Hear(name, answer, clock)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if b.c != nil {
		b.c.Deal(clock, b.living)
	}
	for _, name := range b.living {
		l := b.nodes[name]
		if b.c != nil && !b.cut[name] {
			g, err := l.node.Grant(b.c.Grant(name, clock, nil), l.now)
			if err != nil {
				b.t.Fatal(err)
			}
			l.coord.Take(g, l.now)
		}
		l.coord.Redistribute(l.now, l.grant)
	}
}

// shares adds up what all nodes have of the limit.
func (b *lab) shares() (sum int64) {
	for _, l := range b.nodes {
		share, _ := l.share()
		sum += share
	}
	return sum
}

// TestGrantOfAMoment: a grant that comes when its period has no time left any more makes no rate of
// its tokens that overflows.
func TestGrantOfAMoment(t *testing.T) {
	l := newLocal(2)
	l.collect(10, 5)
	l.coord.Redistribute(l.now, l.grant)
	var r scheduler.GateReport
	l.coord.Report(&r)
	g := &scheduler.NodeGrant{Left: 1, Lasts: lasts, Nodes: 2, Parts: []scheduler.Part{{Number: r.Servers[0].Entities[0].Number, Reserved: mostCount, Share: scheduler.Whole}}}
	if err := checkGrant(g); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.coord.Take(g, l.now)
		l.coord.Redistribute(l.now, l.grant)
		if _, tokens := l.share(); tokens < 0 || tokens > mostCount {
			t.Errorf("found %d tokens", tokens)
		}
		l.now += Interval
	}
}

// TestFollowsTheDemand: an initiator has its reservation and its limit where it asks for them, from
// the second interval on after its demand has moved.
func TestFollowsTheDemand(t *testing.T) {
	b := newLab(t, 3)
	for round := range 9 {
		to := b.living[round%3]
		for i := range 10 {
			b.interval(map[string]int64{to: limited})
			share, reservation := b.nodes[to].share()
			if left := int64(intervals) - int64(b.c.coord.Left(b.now)/Interval); i >= 2 && (share < scheduler.Whole*9/10 || reservation == 0 && left == 0) {
				t.Errorf("round %d, interval %d: found %d millionths of the limit and %d tokens of the reservation, expected most of both", round, i, share, reservation)
			}
			if sum := b.shares(); sum > scheduler.Whole {
				t.Errorf("round %d, interval %d: the nodes have %d millionths of the limit, expected all at most", round, i, sum)
			}
		}
	}
}

// TestSilence: who hears of no controller goes on with what it was granted last, and falls to what
// all may have at once when that holds no more; the others have the rest. Together they have no more
// than the limit at any time.
func TestSilence(t *testing.T) {
	b := newLab(t, 3)
	asked := map[string]int64{"n0": limited}
	within := func(i int) {
		if sum := b.shares(); sum > scheduler.Whole {
			t.Errorf("interval %d: found %d millionths in all, expected all of the limit at most", i, sum)
		}
	}
	for range 10 {
		b.interval(asked)
	}
	b.cut["n0"] = true
	for i := range 20 {
		asked["n1"] = limited
		b.interval(asked)
		within(i)
		switch share, _ := b.nodes["n0"].share(); {
		case i < Holds/Interval-1 && share < scheduler.Whole*9/10:
			t.Errorf("interval %d: found %d millionths, expected the last share", i, share)
		case i >= Holds/Interval && share > scheduler.Whole/3:
			t.Errorf("interval %d: found %d millionths, expected a third at most", i, share)
		}
	}
	if share, _ := b.nodes["n1"].share(); share < scheduler.Whole*6/10 {
		t.Errorf("found %d millionths where the demand is, expected what the silent node does not have", share)
	}
	b.cut["n0"] = false
	delete(asked, "n1")
	for range 3 {
		b.interval(asked)
	}
	if share, _ := b.nodes["n0"].share(); share < scheduler.Whole*9/10 {
		t.Errorf("found %d millionths after the silence, expected most", share)
	}
	b.c = nil
	for i := range 20 {
		b.interval(asked)
		within(i)
		share, reservation := b.nodes["n0"].share()
		if i < Holds/Interval-1 && share < scheduler.Whole*9/10 || i >= Holds/Interval && share > scheduler.Whole/3 || reservation == 0 {
			t.Errorf("interval %d: found %d millionths and %d tokens, expected the last ones, of the limit a third at most in the end", i, share, reservation)
		}
	}
}

// TestAnotherController: the first grants of a new controller, before any node has lost what an
// earlier one has granted, are as those were, also while a node lives that says nothing.
func TestAnotherController(t *testing.T) {
	for _, silent := range []string{"", "n2", "n1"} {
		b := newLab(t, 3)
		asked := map[string]int64{"n0": limited}
		for range 10 {
			b.interval(asked)
		}
		b.c = nil
		for range 5 {
			b.interval(asked)
		}
		b.c = NewController(Config{Term: 2})
		b.cut[silent] = true
		for i := range 8 {
			b.interval(asked)
			share, reservation := b.nodes["n0"].share()
			if share < scheduler.Whole*9/10 || reservation == 0 && b.c.coord.Left(b.now) > Interval {
				t.Errorf("interval %d of a new controller that does not hear %q: found %d millionths and %d tokens, expected most", i, silent, share, reservation)
			}
			if sum := b.shares(); sum > scheduler.Whole {
				t.Errorf("interval %d of a new controller that does not hear %q: found %d millionths in all, expected all of the limit at most", i, silent, sum)
			}
		}
	}
}

// TestReportMissed: a report that does not come in time takes nothing from the others: its node keeps
// what it has.
func TestReportMissed(t *testing.T) {
	b := newLab(t, 3)
	asked := map[string]int64{"n0": limited}
	for i := range 20 {
		b.cut["n1"] = i >= 10 && i%2 == 0
		b.interval(asked)
		if share, reservation := b.nodes["n0"].share(); i >= 10 && (share < scheduler.Whole*9/10 || reservation == 0 && b.c.coord.Left(b.now) > Interval) {
			t.Errorf("interval %d: found %d millionths and %d tokens, expected most", i, share, reservation)
		}
	}
}

// TestReportOfBefore: a silent node whose first report goes on from one that the controller has
// forgotten is heard by the next one, and is silent no more.
func TestReportOfBefore(t *testing.T) {
	b := newLab(t, 3)
	asked := map[string]int64{"n0": limited}
	for range 10 {
		b.interval(asked)
	}
	b.cut["n0"] = true
	for range 4 {
		b.interval(asked)
	}
	l := b.nodes["n0"]
	a := Ask{Term: 1, Base: l.node.number}
	answer, err := l.node.Answer(a.Append(nil), l.now, l.coord.Report)
	if err != nil {
		t.Fatal(err)
	}
	if b.c.Hear("n0", answer, b.now) == nil {
		t.Error("a report that goes on from one that is forgotten was taken")
	}
	b.cut["n0"] = false
	for range 3 {
		b.interval(asked)
	}
	if share, _ := l.share(); share < scheduler.Whole*9/10 || len(b.c.silent()) > 0 {
		t.Errorf("found %d millionths and silent nodes %v, expected most and none", share, b.c.silent())
	}
}

// TestReportLate: a grant that follows the report before the last gives nothing twice that was used
// between the two.
func TestReportLate(t *testing.T) {
	b := newLab(t, 2)
	asked := map[string]int64{"n0": limited}
	for b.c.coord.Left(b.now) != period-Interval {
		b.interval(asked)
	}
	l := b.nodes["n0"]
	_, before := l.share()
	const used = 100
	l.collect(used, used)
	a := Ask{Term: 1, Base: l.node.number}
	if _, err := l.node.Answer(a.Append(nil), l.now, l.coord.Report); err != nil {
		t.Fatal(err)
	}
	g, err := l.node.Grant(b.c.Grant("n0", b.now, nil), l.now)
	if err != nil {
		t.Fatal(err)
	}
	l.coord.Take(g, l.now)
	l.coord.Redistribute(l.now, l.grant)
	if _, after := l.share(); after != before-used {
		t.Errorf("found %d tokens of %d after %d were used, expected the rest", after, before, used)
	}
}

// TestMovesWithin: demand that moves within an interval, no later than two of the gates' reports
// before its end, has its reservation and its limit where it went from the next grant on.
func TestMovesWithin(t *testing.T) {
	const parts, each = 10, limited / intervals / 10
	for _, moved := range []int{2, 5, 7} {
		b := newLab(t, 2)
		for range 12 {
			b.interval(map[string]int64{"n0": limited / intervals})
		}
		from, to := b.nodes["n0"], b.nodes["n1"]
		for i := range parts {
			if i < moved {
				from.collect(each, each)
				to.collect(0, 0)
			} else {
				from.collect(0, 0)
				to.collect(2*each, 2)
			}
		}
		b.interval(map[string]int64{"n1": limited})
		if share, reservation := to.share(); share < scheduler.Whole*9/10 || reservation == 0 {
			t.Errorf("moved after %d of %d parts of an interval: found %d millionths and %d tokens, expected most of both", moved, parts, share, reservation)
		}
	}
}

// TestServedAhead: who was served more than its rate at first has no less than that later: what
// others left is not taken from its reservation.
func TestServedAhead(t *testing.T) {
	b := newLab(t, 2)
	for i := range 20 {
		b.interval(map[string]int64{"n0": limited})
		_, tokens := b.nodes["n0"].share()
		if left := b.c.coord.Left(b.now); i > 6 && tokens < reserved*left/period*95/100 {
			t.Errorf("interval %d: found %d tokens for %d ms, expected the rate of %d", i, tokens, left/1e6, reserved)
		}
	}
}

// TestClocksJump: the clock of a node or of the controller leaps ahead, as when a machine was
// suspended. Nobody has more than the limit for that, and who asks for it has it again two intervals
// later.
func TestClocksJump(t *testing.T) {
	for _, whose := range []string{"n0", "n1", ""} {
		b := newLab(t, 3)
		asked := map[string]int64{"n0": limited}
		for range 12 {
			b.interval(asked)
		}
		for _, leap := range []int64{Interval / 2, 3 * Interval, 3600 * period} {
			b.ahead[whose] += leap
			for i := range 7 {
				b.interval(asked)
				if sum := b.shares(); sum > scheduler.Whole {
					t.Errorf("clock of %q %d ns ahead, interval %d: found %d millionths in all, expected all of the limit at most", whose, leap, i, sum)
				}
				if share, reservation := b.nodes["n0"].share(); i >= 2 && (share < scheduler.Whole*9/10 || reservation == 0 && b.c.coord.Left(b.now+b.ahead[""]) > Interval) {
					t.Errorf("clock of %q %d ns ahead, interval %d: found %d millionths and %d tokens, expected most of both", whose, leap, i, share, reservation)
				}
			}
		}
	}
}

// TestStoodStill: a node that stood still obeys nothing that was meant for it then: its part of the
// limit has gone to others.
func TestStoodStill(t *testing.T) {
	b := newLab(t, 2)
	for range 3 {
		b.interval(map[string]int64{"n0": limited})
	}
	l := b.nodes["n0"]
	for _, late := range []struct {
		by   int64
		want bool
	}{{lasts, true}, {lasts + 1, false}} {
		if _, err := l.node.Grant(b.c.Grant("n0", b.now, nil), l.now+late.by); (err == nil) != late.want {
			t.Errorf("a grant that comes %d ns after the report: found %v, expected that it is obeyed: %v", late.by, err, late.want)
		}
	}
}

// TestTerms: a node obeys the newest controller, and tells the other one.
func TestTerms(t *testing.T) {
	l := newLocal(2)
	ask := func(term uint64, now int64) Kind {
		answer, err := l.node.Answer((&Ask{Term: term}).Append(nil), now, l.coord.Report)
		if err != nil {
			t.Fatal(err)
		}
		k, err := KindOf(answer)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for i, c := range []struct {
		term uint64
		now  int64
		want Kind
	}{{5, 0, IsReport}, {4, 1, IsSuperseded}, {6, 2, IsReport}, {5, 3, IsSuperseded}, {5, 4 + remembered, IsReport}} {
		if k := ask(c.term, c.now); k != c.want {
			t.Errorf("question %d: found an answer of kind %d, expected %d", i, k, c.want)
		}
	}
	if _, err := l.node.Grant((&Grant{Term: 4, Report: l.node.number}).Append(nil), 5+remembered); err == nil {
		t.Error("a grant of an earlier controller is obeyed")
	}
}
