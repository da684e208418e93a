package tier

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/cache"
	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// pretended returns a topology of n nodes, which this machine need not have.
func pretended(t testing.TB, n int) numa.Topology {
	t.Helper()
	real, err := numa.Discover(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	topology, err := numa.Override(real, n)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// nodeLoops runs threads event loops, in turn on the nodes of the topology, until
// the test ends.
func nodeLoops(t testing.TB, topology numa.Topology, threads int) (loops []*evloop.Loop) {
	t.Helper()
	for i := range threads {
		n := topology.Nodes[i%len(topology.Nodes)]
		workers := evloop.NewWorkers(1)
		l, err := evloop.New(evloop.Config{Name: fmt.Sprintf("node%d", n.ID), CPU: n.CPUs[0], Node: n.ID, Topology: topology, Workers: workers, Buffers: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		go l.Run()
		t.Cleanup(func() {
			workers.Close()
			l.Stop()
		})
		loops = append(loops, l)
	}
	return loops
}

// forwarders is a volume that is served by several event threads.
type forwarders struct {
	cache  *Cache
	volume backstore.Store
	loops  []*evloop.Loop
	closed bool
}

func newForwarders(t testing.TB, s setup, store backstore.Store, threads int, threshold int64) *forwarders {
	t.Helper()
	f := &forwarders{loops: nodeLoops(t, pretended(t, s.nodes), threads)}
	config := s.config()
	config.ForwardThreshold = threshold
	f.cache = newCache(t, config)
	f.cache.Serve(f.loops...)
	v, err := f.cache.Wrap(store, s.volume)
	if err != nil {
		t.Fatal(err)
	}
	f.volume = v
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// close closes the volume, once.
func (f *forwarders) close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	return f.volume.Close()
}

// client opens a lane on a loop, which its close closes.
func (f *forwarders) client(t testing.TB, loop int) (c *backstoretest.Client, closing func()) {
	lane, err := f.volume.Lane(f.loops[loop])
	if err != nil {
		t.Fatal(err)
	}
	return &backstoretest.Client{Loop: f.loops[loop], Lane: lane}, func() { backstoretest.On(f.loops[loop], lane.Close) }
}

// predict adds to want what Algorithm 1 says of n bytes at off that come in on a
// loop.
func (f *forwarders) predict(want []cache.RouterStats, loop int, off int64, n int, threshold int64) {
	pieces := make([]cache.Piece, 512)
	count, _ := f.cache.blocks.Geometry.Split(0, off, n, pieces)
	var a cache.Affinity
	a.Add(pieces[:count])
	here := f.loops[loop].Node()
	best, somebody := a.Best(len(want), here), false
	for _, l := range f.loops {
		somebody = somebody || l.Node() == best
	}
	h := &want[here]
	h.Interpreted++
	switch {
	case best == here:
		h.Local++
		h.LocalBytes += uint64(n)
	case threshold < 0 || int64(n) < threshold || !somebody:
		h.Remote++
		h.RemoteBytes += uint64(n)
	default:
		h.Forwarded++
		h.ForwardedBytes += uint64(n)
		want[best].Local++
		want[best].LocalBytes += uint64(n)
	}
}

// own is how much of the volume one user has, in bytes.
const own = 512<<10 + sector

// user reads and writes its own part of the volume, through one of the loops.
type user struct {
	f      *forwarders
	loop   int
	base   int64
	model  []byte
	random *rand.Rand
	want   []cache.RouterStats
}

// steps does so for a while and returns what is wrong.
func (u *user) steps(t testing.TB, count int, threshold int64) error {
	c, closing := u.f.client(t, u.loop)
	defer closing()
	for range count {
		first := u.random.Int64N(own / sector)
		n := int(sector * (1 + u.random.Int64N(min(own/sector-first, 400))))
		off := u.base + first*sector
		u.f.predict(u.want, u.loop, off, n, threshold)
		if err := u.step(c, off, u.model[first*sector:][:n]); err != nil {
			return fmt.Errorf("%d bytes at %d: %w", n, off, err)
		}
	}
	return nil
}

func (u *user) step(c *backstoretest.Client, off int64, model []byte) error {
	op := backstore.Op{Off: off, FUA: u.random.IntN(10) == 0}
	if u.random.IntN(2) == 0 {
		op.Kind, op.Data = backstore.Write, backstoretest.Pattern(len(model), u.random.Uint64())
		copy(model, op.Data)
		return c.Run(&op)
	}
	op.Kind, op.Data = backstore.Read, backstoretest.Buffer(len(model))
	if err := c.Run(&op); err != nil {
		return err
	}
	if !bytes.Equal(op.Data, model) {
		return errors.New("other data than written")
	}
	return nil
}

// Whatever is forwarded, reads see what was written, and what is forwarded is
// what Algorithm 1 says: nothing is interpreted twice.
func TestForwardingByAlgorithm1(t *testing.T) {
	const users = 3
	for _, nodes := range []int{1, 2, 4} {
		for i, threshold := range []int64{4 << 10, 64 << 10, -1} {
			policy := Policy((nodes + i) % 2)
			t.Run(fmt.Sprintf("nodes=%d/threshold=%d/%v", nodes, threshold, policy), func(t *testing.T) {
				t.Logf("-seed %d", *seed)
				lower, err := memstore.New(memstore.Config{Size: users * own, Async: i == 1})
				if err != nil {
					t.Fatal(err)
				}
				s := setup{nodes: nodes, block: 16 << 10, blocks: 24, parts: 2}.with(policy, "lru")
				s.volume.ReadAhead, s.volume.Age = 64<<10, time.Millisecond
				f := newForwarders(t, s, lower, nodes+1, threshold)
				checkForwarding(t, f, users, threshold)
			})
		}
	}
}

func checkForwarding(t *testing.T, f *forwarders, users int, threshold int64) {
	nodes := f.cache.config.Layout.Nodes
	all := make([]user, users)
	var group sync.WaitGroup
	for i := range all {
		u := &all[i]
		*u = user{f, i % len(f.loops), int64(i) * own, make([]byte, own), rand.New(rand.NewPCG(*seed, uint64(i))), make([]cache.RouterStats, nodes)}
		group.Go(func() {
			if err := u.steps(t, 60**effort, threshold); err != nil {
				t.Errorf("user %d: %v", i, err)
			}
		})
	}
	group.Wait()
	got, _ := f.cache.Forwarding()
	for n := range got {
		var want NodeTraffic
		want.Node = n
		for i := range all {
			want.add(all[i].want[n])
		}
		if nodes == 1 {
			want.RouterStats = cache.RouterStats{} // nothing is counted where there is nothing to decide
		}
		if got[n] != want {
			t.Errorf("node %d: %+v, expected %+v", n, got[n], want)
		}
	}
}

// remoteBlock returns the offset of a block that is on another node than 0.
func (f *forwarders) remoteBlock() int64 {
	for off := int64(0); ; off += int64(f.cache.blocks.Geometry.BlockSize()) {
		var one [1]cache.Piece
		f.cache.blocks.Geometry.Split(0, off, 1, one[:])
		if one[0].Node != 0 {
			return off
		}
	}
}

var twoNodes = setup{nodes: 2, block: 64 << 10, blocks: 32, parts: 2}

// burst does several operations at once that mostly go to other nodes.
func burst(t *testing.T, c *backstoretest.Client, user int) {
	var ops [4]backstore.Op
	var ends []<-chan struct{}
	for i := range ops {
		ops[i] = backstore.Op{Kind: backstore.Kind(i % 2), Off: int64(user*4+i) * 32 << 10, Data: backstoretest.Buffer(32 << 10)}
		ends = append(ends, c.Go(&ops[i]))
	}
	for i, end := range ends {
		if <-end; ops[i].Err != nil {
			t.Error(ops[i].Err)
		}
	}
}

// Lanes come and go while others forward: those on other threads that served
// them are closed with the last, and opened again.
func TestLanesComeAndGoWhileForwarding(t *testing.T) {
	f := newForwarders(t, setup{nodes: 4, block: 16 << 10, blocks: 16, parts: 1}, newMem(t, true), 4, 4<<10)
	var group sync.WaitGroup
	for i := range f.loops {
		group.Go(func() {
			for range 20 {
				c, closing := f.client(t, i)
				burst(t, c, i)
				closing()
			}
		})
	}
	group.Wait()
	if nodes, _ := f.cache.Forwarding(); nodes[0].Forwarded == 0 {
		t.Error("nothing was forwarded")
	}
}

// A volume that is closed while requests are forwarded waits for all lanes, also
// for those that nobody closes but the volume itself.
func TestCloseWhileForwarding(t *testing.T) {
	f := newForwarders(t, setup{nodes: 4, block: 16 << 10, blocks: 16, parts: 1}, newMem(t, true), 4, 4<<10)
	var opened, group sync.WaitGroup
	for i := range f.loops {
		opened.Add(1)
		group.Go(func() {
			c, closing := f.client(t, i)
			opened.Done()
			for range 10 + 10*i {
				burst(t, c, i)
			}
			closing()
		})
	}
	opened.Wait()
	if err := f.close(); err != nil {
		t.Error(err)
	}
	group.Wait()
}

// remote counts, and names the node whose thread is to serve.
func TestRemote(t *testing.T) {
	f := newForwarders(t, twoNodes, newRAM(t), 2, 8<<10)
	c, closing := f.client(t, 0)
	defer closing()
	there := f.remoteBlock()
	here := (there + 2*64<<10) % (4 * 64 << 10)
	for _, want := range []struct {
		off  int64
		n    int
		node int
		away bool
	}{{there, 16 << 10, 1, true}, {there, 4 << 10, 0, false}, {here, 16 << 10, 0, false}} {
		backstoretest.On(c.Loop, func() {
			if node, away := c.Lane.(*lane).forwarding.remote(want.off, want.n); node != want.node || away != want.away {
				t.Errorf("%d bytes at %d: node %d, %v; expected node %d, %v", want.n, want.off, node, away, want.node, want.away)
			}
		})
	}
	nodes, _ := f.cache.Forwarding()
	if got := nodes[0]; got.Interpreted != 3 || got.Forwarded != 1 || got.Remote != 1 || got.Local != 1 {
		t.Errorf("%+v: expected one forwarded, one of the other node and one of its own", got)
	}
}

// Hits of other nodes are lent, and it is their threads that are to send them.
func TestLentHitsAreSentByTheirNode(t *testing.T) {
	f := newForwarders(t, twoNodes, newRAM(t), 2, 8<<10)
	loop, err := evloop.New(evloop.Config{Name: "lending", CPU: -1, Node: 0, Buffers: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(loop.Stop)
	f.cache.stations[0].loop, f.loops[0] = loop, loop
	c, closing := f.client(t, 0)
	defer closing()
	there := f.remoteBlock()
	c.Read(t, there, 16<<10)
	here := (there + 2*64<<10) % (4 * 64 << 10)
	c.Read(t, here, 16<<10)
	for _, want := range []struct {
		off  int64
		n    int
		away bool
	}{{there, 16 << 10, true}, {there, 4 << 10, false}, {here, 16 << 10, false}} {
		backstoretest.On(loop, func() {
			ref := c.Lane.(backstore.Lender).Lend(want.off, want.n)
			if ref == nil {
				t.Errorf("%d bytes at %d were not lent", want.n, want.off)
				return
			}
			if node, away := ref.Node(); away != want.away || away && node != 1 {
				t.Errorf("%d bytes at %d are to be sent by node %d: %v, expected %v", want.n, want.off, node, away, want.away)
			}
			ref.Release()
		})
	}
	nodes, _ := f.cache.Forwarding()
	if got := nodes[0]; got.Forwarded != 2 || got.Remote != 1 || got.Local != 2 {
		t.Errorf("%+v: expected a read and a loan forwarded, a loan of the other node and two requests of its own served", got)
	}
}

// More requests than there are forwards are served where they are.
func TestForwardsAreBounded(t *testing.T) {
	const more = 10
	f := newForwarders(t, twoNodes, newRAM(t), 2, 4<<10)
	c, closing := f.client(t, 0)
	defer closing()
	held := make(chan struct{})
	f.loops[1].Post(evloop.Func(func() { <-held }))
	off, ops := f.remoteBlock(), make([]backstore.Op, maxForwards+more)
	var group sync.WaitGroup
	backstoretest.On(c.Loop, func() {
		for i := range ops {
			ops[i] = backstore.Op{Kind: backstore.Read, Off: off, Data: backstoretest.Buffer(4 << 10), Done: func(*backstore.Op) { group.Done() }}
			group.Add(1)
			if c.Lane.Submit(&ops[i]) {
				group.Done()
			}
		}
	})
	close(held)
	group.Wait()
	nodes, _ := f.cache.Forwarding()
	if got := nodes[0]; got.Forwarded != maxForwards || got.Remote != more {
		t.Errorf("%d requests forwarded and %d kept, expected %d and %d", got.Forwarded, got.Remote, maxForwards, more)
	}
}

// homebody is a store that gives no lane to one loop.
type homebody struct {
	backstore.Store
	refused *evloop.Loop
}

func (h *homebody) Lane(l *evloop.Loop) (backstore.Lane, error) {
	if l == h.refused {
		return nil, errors.New("no lane for this thread")
	}
	return h.Store.Lane(l)
}

// A thread that cannot serve a volume sends the request back.
func TestForwardToThreadWithoutLane(t *testing.T) {
	h := &homebody{Store: newRAM(t)}
	f := newForwarders(t, twoNodes, h, 2, 4<<10)
	h.refused = f.loops[1]
	c, closing := f.client(t, 0)
	defer closing()
	off, data := f.remoteBlock(), backstoretest.Pattern(8<<10, 5)
	c.Write(t, off, data)
	if got := c.Read(t, off, len(data)); !bytes.Equal(got, data) {
		t.Error("read back other data")
	}
}

// An error of the store below reaches who has asked.
func TestForwardedErrors(t *testing.T) {
	f := newForwarders(t, twoNodes, &failing{newRAM(t)}, 2, 4<<10)
	c, closing := f.client(t, 0)
	defer closing()
	err := c.Do(backstore.Op{Kind: backstore.Read, Off: f.remoteBlock(), Data: backstoretest.Buffer(8 << 10)})
	if !errors.Is(err, backstore.ErrGone) {
		t.Errorf("a forwarded read: %v, expected %v", err, backstore.ErrGone)
	}
}

// failing is a store that fails everything.
type failing struct{ backstore.Store }

func (f *failing) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := f.Store.Lane(l)
	return &failingLane{lane}, err
}

type failingLane struct{ backstore.Lane }

func (failingLane) TryNow(*backstore.Op) bool { return false }

func (failingLane) Submit(op *backstore.Op) bool {
	op.Err = backstore.ErrGone
	return true
}

// Once a second the threshold follows what was measured, unless it is fixed.
func TestThresholdAdapts(t *testing.T) {
	for _, c := range []struct{ configured, first, after int64 }{
		{0, firstThreshold, 32 << 10},
		{16 << 10, 16 << 10, 16 << 10},
		{-1, cache.NeverForward, cache.NeverForward},
	} {
		var tuning tuning
		tuning.set(c.configured)
		if got := tuning.threshold.Load(); got != c.first {
			t.Errorf("configured %d: %d at first, expected %d", c.configured, got, c.first)
		}
		w := forwarding{station: &station{tuning: &tuning}}
		for i := range 100 * sampleEvery {
			if !w.due() {
				continue
			}
			tuning.learn(int64(i), func(t *cache.Tuner) {
				t.HandedOver(8000)
				t.Copied(1000, false, 53)
				t.Copied(1000, true, 313)
			})
		}
		if tuning.adaptive.Load() {
			tuning.learn(2*adaptPeriod, func(*cache.Tuner) {})
		}
		if got := tuning.threshold.Load(); got != c.after {
			t.Errorf("configured %d: %d in the end, expected %d", c.configured, got, c.after)
		}
	}
}
