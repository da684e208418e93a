package promise

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
	"lunar/cluster/mem"
	"lunar/scheduler"
	"lunar/scheduler/nodes"
)

const (
	limit = 2000 // tokens/s
	lease = time.Second
)

// gates are a server's: one event thread with one initiator, which gets what its limit lets it.
type gates struct {
	mu     sync.Mutex
	coord  *scheduler.Coordinator
	grant  []scheduler.GateGrant
	disk   *scheduler.Device
	last   time.Time
	asked  int64 // tokens/s
	counts scheduler.EntityReport
}

func newGates() *gates {
	isPool := func(string) bool { return true }
	return &gates{
		coord: scheduler.NewCoordinator(scheduler.CoordinatorConfig{Threads: 1, Above: true, Foreign: isPool}),
		grant: make([]scheduler.GateGrant, 1), disk: &scheduler.Device{Name: "pool"}, last: time.Now(),
		counts: scheduler.EntityReport{Entity: "initiator a", Number: 1, Level: scheduler.InitiatorLevel, Root: true, Limit: limit},
	}
}

func (g *gates) share() (share int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.grant[0].Shares {
		share = s.Share
	}
	return share
}

func (g *gates) ask(rate int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = rate
}

// collect serves what has passed since.
func (g *gates) collect() {
	passed := int64(time.Since(g.last))
	g.last = time.Now()
	may := int64(0)
	for _, s := range g.grant[0].Shares {
		may = limit * s.Share / scheduler.Whole * passed / 1e9
	}
	c, asked := &g.counts, g.asked*passed/1e9
	c.Queued = asked - min(asked, may)
	c.Backlogged = c.Queued > 0
	c.Served += min(asked, may)
	c.Offered = max(c.Offered, c.Served+c.Queued)
	g.coord.Collect(&scheduler.GateReport{Servers: []scheduler.ServerReport{{Device: g.disk, Number: 1, Done: c.Served, Entities: []scheduler.EntityReport{*c}}}})
}

func (g *gates) ReportQoS(r *scheduler.GateReport) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.collect()
	g.coord.Report(r)
}

func (g *gates) GrantQoS(n *scheduler.NodeGrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coord.Take(n, time.Now().UnixNano())
	g.coord.Redistribute(time.Now().UnixNano(), g.grant)
}

func (g *gates) SetQoSNodes(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coord.SetNodes(int64(n))
}

// tick is what target does by itself.
func (g *gates) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now().UnixNano(); now >= g.coord.Deadline() {
		g.collect()
		g.coord.Redistribute(now, g.grant)
	}
}

// lab is three nodes in a bubble.
type lab struct {
	t       *testing.T
	old     string // a node of another version
	network *mem.Network
	wires   *linktest.Network
	names   []string
	living  atomic.Pointer[[]string] // as nodes know them
	gates   map[string]*gates
	links   map[string]*link.Links
	keepers map[string]*Keeper
	states  []cluster.State
}

// inLab runs a test in virtual time.
func inLab(t *testing.T, run func(*lab)) { inLabWith(t, "", run) }

// inLabWith has a node be of another version.
func inLabWith(t *testing.T, old string, run func(*lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, old: old, network: mem.NewNetwork(), wires: linktest.New(), gates: map[string]*gates{}, links: map[string]*link.Links{}, keepers: map[string]*Keeper{}}
		for i := range 3 {
			l.names = append(l.names, fmt.Sprint("n", i+1))
		}
		living := slices.Clone(l.names)
		l.living.Store(&living)
		var all []*link.Links
		for _, name := range l.names {
			all = append(all, l.start(name))
		}
		l.wires.Meet(all...)
		stop := make(chan struct{})
		var ticking sync.WaitGroup
		for _, g := range l.gates {
			ticking.Go(func() {
				for {
					select {
					case <-time.After(20 * time.Millisecond):
						g.tick()
					case <-stop:
						return
					}
				}
			})
		}
		run(l)
		close(stop)
		ticking.Wait()
		l.network.SetQuorum(true)
		for _, name := range l.names {
			l.network.Cut(name, false)
			l.wires.CutAll(name, false)
		}
		for _, k := range l.keepers {
			k.Stop()
		}
		for _, s := range l.states {
			s.Close()
		}
		for _, k := range l.links {
			k.Close()
		}
		l.wires.Wait()
	})
}

func (l *lab) start(name string) *link.Links {
	g, links, state := newGates(), link.New(l.wires.Config(name, name)), l.network.State(name)
	l.gates[name], l.links[name], l.states = g, links, append(l.states, state)
	over := Links(links)
	if name == l.old {
		over = older{links}
	}
	l.keepers[name] = New(Config{
		State: state, Keys: cluster.KeysOf("test"), Node: name, Lease: lease, Links: over, Gates: g,
		Living: func() []string { return *l.living.Load() }, Shared: func(string) bool { return true },
		Controller: func() nodes.Config { return nodes.Config{} },
		Flows:      func() []scheduler.Flow { return []scheduler.Flow{{Initiator: "of " + name}} }, Logger: slog.New(slog.DiscardHandler),
	})
	links.Open()
	l.keepers[name].Start()
	return links
}

// controllers are the nodes that take themselves to be it.
func (l *lab) controllers() (all []string) {
	for _, name := range l.names {
		if k := l.keepers[name]; k != nil {
			k.do(context.Background(), func() {
				if k.controller != nil {
					all = append(all, name)
				}
			})
		}
	}
	return all
}

// one waits until there is one controller, and returns it.
func (l *lab) one(within time.Duration) string {
	l.t.Helper()
	for began := time.Now(); time.Since(began) <= within; time.Sleep(50 * time.Millisecond) {
		if all := l.controllers(); len(all) == 1 {
			return all[0]
		}
	}
	l.t.Fatalf("found controllers %v after %v, expected one", l.controllers(), within)
	return ""
}

// has reports whether a node has most of the limit after a time, and all together no more than it.
func (l *lab) has(name string, after time.Duration) {
	l.t.Helper()
	time.Sleep(after)
	sum := int64(0)
	for _, g := range l.gates {
		sum += g.share()
	}
	if share := l.gates[name].share(); share < scheduler.Whole*8/10 || sum > scheduler.Whole {
		l.t.Errorf("node %s has %d millionths of the limit, and all have %d, expected most and no more than all", name, share, sum)
	}
}

// demand moves to one node.
func (l *lab) demand(to string) {
	for name, g := range l.gates {
		g.ask(0)
		if name == to {
			g.ask(limit)
		}
	}
}

// nowhere are links to nobody.
type nowhere struct{}

func (nowhere) Handle(link.Kind, link.Receiver)         {}
func (nowhere) Send(string, link.Kind, ...[]byte) error { return link.ErrUnreachable }
func (nowhere) Call(context.Context, string, link.Message) ([]byte, error) {
	return nil, link.ErrUnreachable
}

// TestSupersededHere: a controller whose own node has heard a later one is none any more, also while
// it asks all nodes.
func TestSupersededHere(t *testing.T) {
	k := New(Config{Node: "n1", Links: nowhere{}, Gates: newGates(), Living: func() []string { return []string{"n1", "n2"} }, Shared: func(string) bool { return true }, Logger: slog.New(slog.DiscardHandler)})
	k.controller = nodes.NewController(nodes.Config{Term: 1})
	later := nodes.Ask{Term: 2}
	k.take("n2", later.Append(nil))
	if wait := k.decide(); wait <= 0 || k.controller != nil || len(k.superseded) != 1 {
		t.Errorf("found %v until the next decision, controller %v", wait, k.controller)
	}
}

// TestFollows: one node is elected, and the limit goes where it is asked for.
func TestFollows(t *testing.T) {
	inLab(t, func(l *lab) {
		l.one(2 * time.Second)
		for _, to := range []string{"n1", "n3", "n2"} {
			l.demand(to)
			l.has(to, time.Second)
		}
		for _, name := range l.names {
			s, err := l.keepers[name].Status(l.t.Context())
			if err != nil || s.Controller != l.one(0) || len(s.Nodes) != 3 || len(s.Entities) != 1 || s.Entities[0].Limit != limit {
				t.Errorf("node %s says %+v (%v), expected one limit on three nodes", name, s, err)
			}
			if seen := l.keepers[name].Seen(); seen == nil || seen.Controller != l.one(0) || seen.Limit != limit || len(seen.Nodes) != 3 {
				t.Errorf("node %s was told %+v, expected the same in sums", name, seen)
			}
		}
	})
}

// TestElsewhere: a node asks the others what their sessions use, and says who does not answer.
func TestElsewhere(t *testing.T) {
	inLab(t, func(l *lab) {
		l.one(2 * time.Second)
		time.Sleep(time.Second)
		for _, c := range []struct{ cut, flows, silent int }{{0, 2, 0}, {1, 1, 1}} {
			if c.cut > 0 {
				l.wires.CutAll("n3", true)
			}
			ctx, end := context.WithTimeout(l.t.Context(), time.Second)
			flows, silent := l.keepers["n1"].Elsewhere(ctx)
			if end(); len(flows) != c.flows || len(silent) != c.silent {
				t.Errorf("found %v and %v, expected %d flows and %d silent nodes", flows, silent, c.flows, c.silent)
			}
		}
	})
}

// loses cuts the controller off from all, while the first of the rest has what it asks for.
func (l *lab) loses() (controller string, rest []string) {
	controller = l.one(2 * time.Second)
	rest = slices.DeleteFunc(slices.Clone(l.names), func(n string) bool { return n == controller })
	l.demand(rest[0])
	l.has(rest[0], time.Second)
	l.network.Cut(controller, true)
	l.wires.CutAll(controller, true)
	l.names = rest
	return controller, rest
}

// TestControllerDies: another node is elected within two seconds, and knows within two intervals
// who needs what; the limit holds meanwhile.
func TestControllerDies(t *testing.T) {
	inLab(t, func(l *lab) {
		dead, rest := l.loses()
		l.living.Store(&rest)
		began, sum := time.Now(), int64(0)
		for ; len(l.controllers()) == 0; time.Sleep(10 * time.Millisecond) {
			for _, name := range rest {
				sum += l.gates[name].share()
			}
			if time.Since(began) > 500*time.Millisecond && sum > scheduler.Whole {
				t.Fatalf("without a controller the nodes have %d millionths, expected all at most", sum)
			}
			sum = 0
			if time.Since(began) > 2*time.Second {
				t.Fatal("found no controller after two seconds")
			}
		}
		t.Logf("the next controller began after %v", time.Since(began))
		time.Sleep(2*nodes.Interval + 100*time.Millisecond)
		if share := l.gates[rest[0]].share(); share < scheduler.Whole*8/10 {
			t.Errorf("found %d millionths in the third interval of the next controller, expected most", share)
		}
		if seen := l.keepers[rest[0]].Seen(); seen == nil || seen.Controller == dead {
			t.Errorf("found %+v, expected what the next controller tells", seen)
		}
		if seen := l.keepers[dead].Seen(); seen != nil && seen.Controller != dead {
			t.Errorf("found %+v at a node that hears nobody", seen)
		}
		l.names = []string{"n1", "n2", "n3"}
	})
}

// TestControllerStops: the controller stands still, lives on for the state until its lease ends, and
// comes back. All together have no more than the limit at any time, and who asks for it has what it
// had but for what that node may have.
func TestControllerStops(t *testing.T) {
	inLab(t, func(l *lab) {
		all := l.names
		stopped, rest := l.loses()
		for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > 1800*time.Millisecond {
				l.living.Store(&rest)
			}
			if share := l.gates[rest[0]].share(); share < scheduler.Whole*8/10 {
				t.Fatalf("found %d millionths %v after the controller stopped, expected most", share, time.Since(began))
			}
			if time.Since(began) < 1800*time.Millisecond {
				l.within()
			}
		}
		l.names = all
		l.network.Cut(stopped, false)
		l.wires.CutAll(stopped, false)
		l.living.Store(&all)
		l.demand(rest[0])
		l.has(rest[0], 3*time.Second)
	})
}

// TestNoQuorum: without etcd the controller goes on, and shares follow the demand.
func TestNoQuorum(t *testing.T) {
	inLab(t, func(l *lab) {
		was := l.one(2 * time.Second)
		l.network.SetQuorum(false)
		for _, to := range []string{"n1", "n2", "n3"} {
			l.demand(to)
			l.has(to, 4*lease)
		}
		if all := l.controllers(); len(all) != 1 || all[0] != was {
			t.Errorf("found controllers %v, expected %s still", all, was)
		}
	})
}

// TestCutFromLinks: a node that nobody reaches has its even part of the limit at most once its grant
// holds no more, and the others have the rest.
func TestCutFromLinks(t *testing.T) {
	inLab(t, func(l *lab) {
		controller := l.one(2 * time.Second)
		alone := l.names[(slices.Index(l.names, controller)+1)%3]
		l.demand(alone)
		l.has(alone, time.Second)
		l.wires.CutAll(alone, true)
		time.Sleep(nodes.Holds + 150*time.Millisecond)
		if share := l.gates[alone].share(); share > scheduler.Whole/3 {
			t.Errorf("found %d millionths, expected a third at most", share)
		}
		for _, g := range l.gates {
			g.ask(limit)
		}
		time.Sleep(time.Second)
		sum := int64(0)
		for _, g := range l.gates {
			sum += g.share()
		}
		if sum > scheduler.Whole || sum < scheduler.Whole*9/10 {
			t.Errorf("all have %d millionths, expected all of them", sum)
		}
		l.wires.CutAll(alone, false)
		l.demand(alone)
		l.has(alone, 3*time.Second)
	})
}

// TestCutFromEtcd: a controller that only etcd has lost is one no more once another is elected.
func TestCutFromEtcd(t *testing.T) {
	inLab(t, func(l *lab) {
		was := l.one(2 * time.Second)
		l.network.Cut(was, true)
		time.Sleep(4 * lease)
		if now := l.one(0); now == was {
			t.Errorf("node %s is the controller still, expected another one", was)
		}
		l.demand(was)
		l.has(was, time.Second)
	})
}

// TestOneWay: a node that hears the controller and is not heard, or is heard and hears nothing, has
// its even part of the limit at most, and all together no more than all of it.
func TestOneWay(t *testing.T) {
	inLab(t, func(l *lab) {
		controller := l.one(2 * time.Second)
		deaf := l.names[(slices.Index(l.names, controller)+1)%3]
		for _, way := range [][2]string{{controller, deaf}, {deaf, controller}} {
			l.demand(deaf)
			l.has(deaf, 3*time.Second)
			l.wires.Cut(way[0], way[1], true)
			for _, g := range l.gates {
				g.ask(limit)
			}
			time.Sleep(nodes.Holds + 150*time.Millisecond)
			for range 20 {
				time.Sleep(100 * time.Millisecond)
				if share := l.gates[deaf].share(); share > scheduler.Whole/3 {
					t.Errorf("from %s to %s nothing comes: found %d millionths, expected a third at most", way[0], way[1], share)
				}
				l.within()
			}
			l.wires.Cut(way[0], way[1], false)
		}
	})
}

// TestAllLinksDown: nodes of which none hears another one have no more than the limit together, and
// their promises again once they do.
func TestAllLinksDown(t *testing.T) {
	inLab(t, func(l *lab) {
		l.one(2 * time.Second)
		l.demand("n2")
		l.has("n2", time.Second)
		for _, name := range l.names {
			l.wires.CutAll(name, true)
		}
		for _, g := range l.gates {
			g.ask(limit)
		}
		time.Sleep(nodes.Holds + 150*time.Millisecond)
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			l.within()
		}
		for _, name := range l.names {
			l.wires.CutAll(name, false)
		}
		l.demand("n2")
		l.has("n2", 3*time.Second)
	})
}

// older are the links of a node of another version, which understands no message of this one.
type older struct{ Links }

func (o older) Handle(kind link.Kind, h link.Receiver) {
	o.Links.Handle(kind, func(from link.Peer, body []byte, answer func(...[]byte)) {
		h(from, append([]byte{body[0] + 1}, body[1:]...), answer)
	})
}

func (o older) Send(node string, kind link.Kind, body ...[]byte) error {
	first := append([]byte{body[0][0] + 1}, body[0][1:]...)
	return o.Links.Send(node, kind, append([][]byte{first}, body[1:]...)...)
}

// TestOlderVersion: a node whose messages the others do not understand has its even part of the
// limit at most, and all together no more than all of it, whoever the controller is.
func TestOlderVersion(t *testing.T) {
	for _, name := range []string{"n1", "n2", "n3"} {
		inLabWith(t, name, func(l *lab) {
			l.one(2 * time.Second)
			for _, g := range l.gates {
				g.ask(limit)
			}
			time.Sleep(2 * time.Second)
			for range 20 {
				time.Sleep(100 * time.Millisecond)
				if share := l.gates[name].share(); share > scheduler.Whole/3 {
					t.Errorf("node %s of another version has %d millionths, expected a third at most", name, share)
				}
				l.within()
			}
		})
	}
}

// within fails if all nodes together have more than the limit.
func (l *lab) within() {
	l.t.Helper()
	sum := int64(0)
	for _, g := range l.gates {
		sum += g.share()
	}
	if sum > scheduler.Whole {
		l.t.Errorf("all have %d millionths of the limit, expected all of it at most", sum)
	}
}
