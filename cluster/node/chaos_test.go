package node

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/backstore/rbd/fake"
	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
	"lunar/cluster/mem"
	"lunar/internal/evloop"
)

var (
	rounds    = flag.Int("chaos.rounds", 8, "faults of TestChaos")
	chaosSeed = flag.Uint64("chaos.seed", uint64(time.Now().UnixNano()), "of TestChaos; it logs it when it fails")
)

const (
	chaosLease    = 400 * time.Millisecond
	chaosSuspect  = 200 * time.Millisecond
	chaosHold     = 3 * time.Second
	chaosPatience = 30 * time.Second // of the test
	blockBytes    = 4096
	chaosBlocks   = 64
	chaosUsers    = 4
)

// chaos is a cluster of three nodes on one Ceph in this process, and users of its volumes.
type chaos struct {
	t       *testing.T
	random  *rand.Rand
	net     *mem.Network
	wires   *linktest.Network
	keys    cluster.Keys
	ceph    *fake.Cluster
	log     *slog.Logger
	mu      sync.Mutex
	living  []*process
	all     []*process
	volumes map[string][]*block
	acked   atomic.Int64
	stale   atomic.Int64 // reads that were given up and ended later
	ended   atomic.Bool
}

// block is what the ledger knows of one. A user of its own works on it.
type block struct {
	number  int
	mu      sync.Mutex
	next    uint32
	floor   uint32   // acknowledged last
	may     []uint32 // what it may hold
	pending map[uint32]*process
}

// TestChaos: three nodes on one Ceph have their processes killed and stopped, are cut from the
// state, have slow ways to it, no quorum, a Ceph that does not answer, planned moves and
// upgrades. An
// independent ledger finds each acknowledged write, and no read is older than what was
// acknowledged when it was sent, also on a path to a process that was stopped.
func TestChaos(t *testing.T) {
	c := newChaos(t)
	defer c.end()
	var users sync.WaitGroup
	for u := range chaosUsers {
		users.Go(func() { c.use(u, rand.New(rand.NewPCG(*chaosSeed, uint64(u)+1))) })
	}
	c.settles("the start")
	done := map[string]int{}
	for range *rounds {
		f := chaosFaults[c.random.IntN(len(chaosFaults))]
		done[f.what]++
		f.do(c)
		c.settles(f.what)
	}
	c.ended.Store(true)
	users.Wait()
	c.survey()
	var bypassed, opened int64
	for _, p := range c.all {
		for _, v := range p.vessels {
			bypassed, opened = bypassed+v.bypassed.Load(), opened+v.opened.Load()
		}
	}
	t.Logf("%v: %d writes acknowledged, %d opens, %d reads past the cache, %d answers that came late", done, c.acked.Load(), opened, bypassed, c.stale.Load())
	if c.acked.Load() == 0 || opened == 0 {
		t.Error("the test is in vain")
	}
	if t.Failed() {
		t.Logf("seed %d", *chaosSeed)
	}
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{
		t: t, random: rand.New(rand.NewPCG(*chaosSeed, 0)), net: mem.NewNetwork(), wires: linktest.New(), keys: cluster.KeysOf("prod"),
		ceph: fake.New(nil), volumes: map[string][]*block{}, log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, v := range []string{"cached", "plain"} {
		c.ceph.Create("rbd/"+v, chaosBlocks*blockBytes)
		for i := range chaosBlocks {
			c.volumes[v] = append(c.volumes[v], &block{number: i, may: []uint32{0}, pending: map[uint32]*process{}})
		}
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		c.living = append(c.living, c.start(n))
	}
	return c
}

// start begins a process.
func (c *chaos) start(name string) *process {
	p := &process{name: name, road: fmt.Sprint(name, ".", len(c.all)), vessels: map[string]*vessel{}}
	p.state, p.clients = c.net.State(p.road), rbd.NewClients(c.ceph.Library, c.log)
	var err error
	if p.cache, err = newCache(c.log); err == nil {
		p.loop, err = evloop.New(evloop.Config{Name: p.road, CPU: -1, Node: -1, Workers: evloop.NewWorkers(1)})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	go p.loop.Run()
	links := c.wires.Config(name, p.road)
	links.Beat, links.Silence, links.Says = chaosSuspect/5, chaosSuspect, func() []byte { return p.node.Says() }
	p.links = link.New(links)
	p.node = Start(Config{State: p.state, Keys: c.keys, Node: name, Incarnation: p.road, Links: p.links, Lease: chaosLease, Suspect: chaosSuspect, Hold: chaosHold, Logger: c.log})
	p.links.Watch(p.node.Hear)
	p.links.Open()
	for volume := range c.volumes {
		image, err := rbd.ParseName("rbd/" + volume)
		if err != nil {
			c.t.Fatal(err)
		}
		v := &vessel{process: p, cached: volume == "cached"}
		v.image = rbd.Config{Clients: p.clients, Account: rbd.Account{Config: "ceph.conf", User: "lunar"}, Image: image, Server: name, Logger: c.log}
		p.vessels[volume] = v
		if err := p.node.Add(volume, VolumeConfig{Owners: []string{"n1", "n2", "n3"}, Cached: v.cached}, v); err != nil {
			c.t.Fatal(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, p)
	for _, o := range c.all {
		if !o.dead && !o.left {
			c.wires.Meet(o.links)
		}
	}
	return p
}

// chaosFaults are what happens to the cluster. Each ends with everything in order again, but
// for what the cluster has to do itself.
var chaosFaults = []struct {
	what string
	do   func(*chaos)
}{
	{"kill", func(c *chaos) { c.kill(true) }},
	{"kill without a word", func(c *chaos) { c.kill(false) }},
	{"stop", func(c *chaos) {
		p := c.any()
		p.stop(c)
		c.sleep(3 * chaosLease)
		p.resume(c)
	}},
	{"stop the owner for long", func(c *chaos) {
		p := c.owner()
		p.stop(c)
		c.settles("the stop of an owner")
		c.sleep(chaosLease / 2)
		p.resume(c)
	}},
	{"cut", func(c *chaos) {
		p := c.any()
		c.net.Cut(p.road, true)
		c.sleep(3 * chaosLease)
		c.net.Cut(p.road, false)
	}},
	{"cut the owner from etcd alone", func(c *chaos) {
		p := c.owner()
		c.net.Cut(p.road, true)
		c.sleep(6 * chaosLease)
		c.settles("the owner was cut from etcd")
		c.net.Cut(p.road, false)
	}},
	{"cut from all", func(c *chaos) {
		p := c.any()
		c.net.Cut(p.road, true)
		c.wires.CutAll(p.name, true)
		c.sleep(3 * chaosLease)
		c.wires.CutAll(p.name, false)
		c.net.Cut(p.road, false)
	}},
	{"links cut", func(c *chaos) {
		a, b := c.any(), c.any()
		c.wires.Cut(a.name, b.name, true)
		c.sleep(3 * chaosLease)
		c.wires.Cut(a.name, b.name, false)
	}},
	{"slow way", func(c *chaos) {
		p := c.any()
		c.net.Delay(p.road, func() time.Duration { return time.Duration(rand.IntN(int(chaosSuspect))) })
		c.sleep(4 * chaosLease)
		c.net.Delay(p.road, nil)
	}},
	{"lost answers", func(c *chaos) {
		p := c.any()
		c.net.Lose(p.road, func() bool { return rand.IntN(3) == 0 })
		c.move()
		c.sleep(2 * chaosLease)
		c.net.Lose(p.road, nil)
	}},
	{"no quorum", func(c *chaos) {
		c.net.SetQuorum(false)
		c.sleep(2 * chaosLease)
		c.net.SetQuorum(true)
	}},
	{"slow Ceph", func(c *chaos) {
		c.ceph.Away(true)
		c.sleep(chaosLease)
		c.ceph.Away(false)
	}},
	{"move", (*chaos).move},
	{"move", (*chaos).move},
	{"upgrade", (*chaos).upgrade},
}

func (c *chaos) sleep(most time.Duration) { time.Sleep(time.Duration(c.random.Int64N(int64(most)))) }

func (c *chaos) any() *process { return c.living[c.random.IntN(len(c.living))] }

// owner is a process that serves.
func (c *chaos) owner() *process {
	i := max(slices.IndexFunc(c.living, func(p *process) bool { return p.vessels["cached"].serves.Load() }), 0)
	return c.living[i]
}

// kill ends a process, with its leases if somebody tells the state, and starts another one.
func (c *chaos) kill(told bool) {
	p := c.owner()
	_ = p.links.Close()
	p.stop(c)
	p.dead = true
	c.wires.CutAll(p.name, false)
	if told {
		items, _ := c.net.Get(c.keys.All())
		for _, i := range items {
			if i.Key == c.keys.Node(p.name) || i.Key == c.keys.Pulse(p.name) {
				_ = c.net.Revoke(i.Lease)
			}
		}
	}
	c.sleep(2 * chaosLease)
	c.replace(p)
}

// replace starts a process of the same node.
func (c *chaos) replace(p *process) {
	n := c.start(p.name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.living = append(slices.DeleteFunc(slices.Clone(c.living), func(o *process) bool { return o == p }), n)
}

// upgrade stops an owner in order, and starts another process of its node.
func (c *chaos) upgrade() {
	p := c.owner()
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	if err := p.node.Stop(ctx); err != nil {
		c.t.Errorf("%s does not stop in order: %v", p.road, err)
	}
	p.left = true
	_ = p.links.Close()
	c.replace(p)
}

func (c *chaos) move() {
	ctx, cancel := context.WithTimeout(context.Background(), chaosHold)
	defer cancel()
	_ = c.any().node.Move(ctx, "cached", c.any().name) // it may be there already, or its owner not know the node yet
}

// settles waits until somebody can write to each volume.
func (c *chaos) settles(after string) {
	c.t.Helper()
	for volume := range c.volumes {
		before := c.acked.Load()
		for began := time.Now(); !c.served(volume) || c.acked.Load() == before; time.Sleep(time.Millisecond) {
			if time.Since(began) > chaosPatience {
				items, _ := c.net.Get("")
				all := ""
				for _, i := range items {
					all += fmt.Sprintf("\n%s %s", i.Key, i.Value)
				}
				c.t.Fatalf("seed %d: nobody serves %s for half a minute after %s:%s", *chaosSeed, volume, after, all)
			}
		}
	}
}

func (c *chaos) served(volume string) bool {
	return slices.ContainsFunc(c.living, func(p *process) bool { return p.goOn == nil && p.vessels[volume].serves.Load() })
}

// use works on the blocks of one user until the end.
func (c *chaos) use(user int, random *rand.Rand) {
	volumes := []string{"cached", "plain"}
	for !c.ended.Load() {
		volume := volumes[random.IntN(2)]
		b := c.volumes[volume][random.IntN(chaosBlocks/chaosUsers)*chaosUsers+user]
		c.mu.Lock()
		p := c.living[random.IntN(len(c.living))]
		if random.IntN(8) == 0 {
			p = c.all[random.IntN(len(c.all))] // a path to a dead one, perhaps
		}
		c.mu.Unlock()
		if random.IntN(3) == 0 {
			c.write(p, volume, b)
		} else {
			c.read(p, volume, b)
		}
	}
}

// patienceOfUsers is how long a user waits before it uses another path.
const patienceOfUsers = 30 * time.Millisecond

func (c *chaos) write(p *process, volume string, b *block) {
	b.mu.Lock()
	for _, by := range b.pending {
		if by == p { // its initiator would have to end the first one before
			b.mu.Unlock()
			return
		}
	}
	b.next++
	g := b.next
	b.may = append(b.may, g)
	b.pending[g] = p
	b.mu.Unlock()
	data := backstoretest.Buffer(blockBytes)
	for i := 0; i < blockBytes; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(b.number)<<32|uint64(g))
	}
	done := make(chan error, 1)
	p.vessels[volume].command(&backstore.Op{Kind: backstore.Write, Off: int64(b.number) * blockBytes, Data: data}, done)
	select {
	case err := <-done:
		c.written(b, g, err)
	case <-time.After(patienceOfUsers):
		go func() { c.written(b, g, <-done); c.stale.Add(1) }()
	}
}

// written notes the end of a write.
func (c *chaos) written(b *block, g uint32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, g)
	switch {
	case errors.Is(err, errRefused):
		b.may = slices.DeleteFunc(b.may, func(o uint32) bool { return o == g })
	case err == nil && g > b.floor:
		c.acked.Add(1)
		b.floor = g
		b.may = slices.DeleteFunc(b.may, func(o uint32) bool { return o < g })
	}
}

func (c *chaos) read(p *process, volume string, b *block) {
	b.mu.Lock()
	floor := b.floor
	b.mu.Unlock()
	op := &backstore.Op{Kind: backstore.Read, Off: int64(b.number) * blockBytes, Data: backstoretest.Buffer(blockBytes)}
	done := make(chan error, 1)
	p.vessels[volume].command(op, done)
	judge := func(err error) {
		if err == nil {
			c.judge(p, volume, b, floor, op)
		}
	}
	select {
	case err := <-done:
		judge(err)
	case <-time.After(patienceOfUsers):
		go func() { judge(<-done); c.stale.Add(1) }()
	}
}

// judge looks whether a read is older than what was acknowledged when it was sent.
func (c *chaos) judge(p *process, volume string, b *block, floor uint32, op *backstore.Op) {
	first := binary.LittleEndian.Uint64(op.Data)
	for i := 0; i < blockBytes; i += 8 {
		if binary.LittleEndian.Uint64(op.Data[i:]) != first {
			c.t.Errorf("%s: block %d of %s is torn", p.road, b.number, volume)
			return
		}
	}
	g := uint32(first)
	b.mu.Lock()
	defer b.mu.Unlock()
	if first != 0 && first>>32 != uint64(b.number) || g < floor || g > b.next {
		c.t.Errorf("%s: read write %d of block %d of %s (hit: %v), and %d was acknowledged when it was asked", p.road, g, b.number, volume, op.Hit, floor)
	}
}

// survey reads all blocks of all volumes when nobody writes.
func (c *chaos) survey() {
	for volume, blocks := range c.volumes {
		for _, b := range blocks {
			read := false
			for _, p := range c.living {
				if !p.vessels[volume].serves.Load() {
					continue
				}
				op := &backstore.Op{Kind: backstore.Read, Off: int64(b.number) * blockBytes, Data: backstoretest.Buffer(blockBytes)}
				done := make(chan error, 1)
				p.vessels[volume].command(op, done)
				err := <-done
				if errors.Is(err, errRefused) || errors.Is(err, backstore.ErrFenced) {
					continue // it learns just now that another one owns the volume
				}
				if err != nil {
					c.t.Errorf("%s: block %d of %s: %v", p.road, b.number, volume, err)
					continue
				}
				read = true
				b.mu.Lock() // a write that was given up may end still
				if g := binary.LittleEndian.Uint32(op.Data); !slices.Contains(b.may, g) {
					c.t.Errorf("%s: block %d of %s holds write %d, expected one of %v", p.road, b.number, volume, g, b.may)
				}
				b.mu.Unlock()
			}
			if !read {
				c.t.Errorf("block %d of %s is read nowhere", b.number, volume)
			}
		}
	}
}

// end ends all processes, the dead ones too.
func (c *chaos) end() {
	c.ended.Store(true)
	c.net.SetQuorum(true)
	c.ceph.Away(false)
	for _, p := range c.all {
		if p.goOn != nil {
			close(p.goOn)
		}
	}
	for _, p := range c.all {
		ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
		switch {
		case p.left:
		case p.dead:
			p.node.resign()
			p.node.leases.Wait()
			p.node.end()
			<-p.node.done
			p.node.rest.Wait()
		default:
			if err := p.node.Stop(ctx); err != nil {
				c.t.Errorf("%s: %v", p.road, err)
			}
		}
		_ = p.links.Close()
		for _, v := range p.vessels {
			if err := v.Close(ctx); err != nil {
				c.t.Logf("%s: %v", p.road, err)
			}
		}
		cancel()
		if err := errors.Join(p.leave(), p.cache.Close(), p.state.Close()); err != nil {
			c.t.Logf("%s: %v", p.road, err)
		}
		p.loop.Workers().Close()
		p.loop.Stop()
	}
	c.ceph.Close()
	c.wires.Wait()
}
