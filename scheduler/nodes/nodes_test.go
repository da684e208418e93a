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

// TestSilence: who hears of no controller falls to what all may have at once, and the others have
// the rest; without any controller the nodes keep their shares as far as that is safe.
func TestSilence(t *testing.T) {
	b := newLab(t, 3)
	asked := map[string]int64{"n0": limited}
	for range 10 {
		b.interval(asked)
	}
	b.cut["n0"] = true
	for i := range 10 {
		b.interval(asked)
		share, _ := b.nodes["n0"].share()
		if i < 1 && share < scheduler.Whole*9/10 {
			t.Errorf("interval %d: found %d millionths, expected the last share", i, share)
		}
		if sum := b.shares(); i > 2 && (share > scheduler.Whole/3 || sum > scheduler.Whole) {
			t.Errorf("interval %d: found %d millionths of %d in all, expected a third at most", i, share, sum)
		}
	}
	b.cut["n0"] = false
	for range 3 {
		b.interval(asked)
	}
	if share, _ := b.nodes["n0"].share(); share < scheduler.Whole*9/10 {
		t.Errorf("found %d millionths after the silence, expected most", share)
	}
	b.c = nil
	for i := range 5 {
		b.interval(asked)
		if sum := b.shares(); sum > scheduler.Whole || i > 2 && sum > scheduler.Whole/3+2*scheduler.Whole/16 {
			t.Errorf("interval %d: found %d millionths in all, expected what each had, a third at most", i, sum)
		}
		if _, reservation := b.nodes["n0"].share(); reservation == 0 {
			t.Errorf("interval %d: found no reservation, expected the last one", i)
		}
	}
	b.c = NewController(Config{Term: 2})
	for range 2 {
		b.interval(asked)
	}
	if share, reservation := b.nodes["n0"].share(); share < scheduler.Whole*9/10 || reservation == 0 {
		t.Errorf("found %d millionths and %d tokens in the second interval of a new controller, expected most", share, reservation)
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
