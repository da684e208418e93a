package target_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// relayRig is servers that present one disk, of which one serves it and the others relay.
type relayRig struct {
	t     testing.TB
	net   *linktest.Network
	disk  backstore.Store
	fence sync.RWMutex
	owner atomic.Int32 // node that may use the disk; under fence
	epoch uint64
	left  atomic.Pointer[scsi.Heritage] // what the owner has left
	nodes []*relayNode

	memory  int64                           // of links; 0: the default
	buffers int                             // of each server; 0: 16 MiB
	beside  func(n int) []target.LUNMapping // that a node presents besides; nil: none
}

type relayNode struct {
	*rig
	all   *relayRig
	index int
	name  string
	disk  *errstore.Store // as the node has it
	links *link.Links
	full  atomic.Int32 // how many messages about commands it cannot send, as if too much waited
	lossy atomic.Int32 // how many it loses
	// follows has those heard of late that follow up on commands; nil: they are not.
	follows atomic.Pointer[stalled]
}

// fenced is the disk as one node has it: it fails while another node owns it.
type fenced struct {
	backstore.Store
	rig  *relayRig
	node int32
}

func (f *fenced) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := f.Store.Lane(l)
	return &fencedLane{lane, f}, err
}

func (f *fenced) Close() error { return nil }

type fencedLane struct {
	backstore.Lane
	of *fenced
}

func (l *fencedLane) TryNow(op *backstore.Op) bool {
	l.of.rig.fence.RLock()
	defer l.of.rig.fence.RUnlock()
	if l.of.rig.owner.Load() != l.of.node {
		if op.Kind != backstore.Flush {
			op.Err = backstore.ErrFenced
		}
		return true
	}
	return l.Lane.TryNow(op)
}

func (l *fencedLane) Submit(op *backstore.Op) bool { return l.TryNow(op) || l.Lane.Submit(op) }

// testCarrier leads to a node.
type testCarrier struct {
	links *link.Links
	node  string
	epoch uint64
	of    *relayNode // where it begins
}

const relayPatience = 10 * time.Second

func (testCarrier) Patience() time.Duration { return relayPatience }

func (c testCarrier) Server() string { return c.node }

func (c testCarrier) Break(lane uint32) { c.links.Break(c.node, link.Command, lane) }

func (c testCarrier) Carry(m scsi.Message, done func([]byte, error)) error {
	kind := link.Manage
	switch {
	case m.Command:
		kind = link.Command
	case m.Follow:
		kind = link.Follow
	}
	if kind != link.Manage {
		if c.of.full.Add(-1) >= 0 {
			return scsi.ErrNotSent
		}
		c.of.full.Store(0)
		if c.of.lossy.Add(-1) >= 0 {
			go done(nil, link.ErrUnknown)
			return nil
		}
		c.of.lossy.Store(0)
	}
	if s := c.of.follows.Load(); s != nil && m.Follow {
		done = s.takes(m, done)
	}
	told := func(err error) error {
		if errors.Is(err, link.ErrUnreachable) {
			return fmt.Errorf("%w: %w", scsi.ErrNotSent, err)
		}
		return err
	}
	return told(c.links.Start(c.node, link.Message{Kind: kind, Lane: m.Lane, Room: m.Room, Body: m.Body}, func(answer []byte, err error) { done(answer, told(err)) }))
}

func newRelayRig(t testing.TB, nodes int) *relayRig {
	t.Helper()
	r := &relayRig{}
	r.open(t, nodes)
	return r
}

func (r *relayRig) open(t testing.TB, nodes int) {
	t.Helper()
	memory, err := memstore.New(memstore.Config{Size: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.t, r.net, r.disk = t, linktest.New(), memory
	r.net.Beat, r.net.Silence = 100*time.Millisecond, time.Second
	t.Cleanup(r.net.Wait)
	for i := range nodes {
		r.nodes = append(r.nodes, r.newNode(i))
	}
	var all []*link.Links
	for _, n := range r.nodes {
		all = append(all, n.links)
	}
	r.net.Meet(all...)
	eventually.Holds(t, "the nodes are linked", func() bool {
		return !slices.ContainsFunc(r.nodes, func(n *relayNode) bool {
			return slices.ContainsFunc(r.nodes, func(o *relayNode) bool { return o != n && !n.links.Up(o.name) })
		})
	})
	for _, n := range r.nodes {
		n.server.SetElsewhere(map[string][]target.Elsewhere{testTarget: n.elsewhere()})
	}
	r.move(0)
}

func (r *relayRig) newNode(i int) *relayNode {
	n := &relayNode{all: r, index: i, name: fmt.Sprintf("n%d", i+1), disk: errstore.Wrap(&fenced{r.disk, r, int32(i)})}
	lu, err := scsi.NewLogicalUnit(scsi.LUConfig{
		Name: "db", Store: n.disk, Shared: true, Logger: testLogger(r.t),
		SaveHeritage: func(h *scsi.Heritage) error { r.left.Store(h); return nil },
		Access:       map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Transitioning}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	n.rigOf(lu)
	config := r.net.Config(n.name, "first")
	config.Memory = r.memory
	n.links = link.New(config)
	handle := func(from link.Peer, body []byte, answer func(...[]byte)) {
		n.server.Relayed(target.RelayPeer{Node: from.Node, Incarnation: from.Incarnation, Back: testCarrier{n.links, from.Node, 0, n}}, body, answer)
	}
	for _, kind := range []link.Kind{link.Command, link.Follow, link.Manage} {
		n.links.Handle(kind, handle)
	}
	n.links.Open()
	r.t.Cleanup(func() { n.links.Close() })
	return n
}

// rigOf makes the node's server with a portal group of its own tag.
func (n *relayNode) rigOf(lu *scsi.LogicalUnit) {
	t := n.all.t
	s, err := target.NewServer(target.Config{Logger: testLogger(t), Threads: 2, Offer: login.DefaultOffer(), Buffers: cmp.Or(n.all.buffers, 16<<20)})
	if err != nil {
		t.Fatal(err)
	}
	luns := []target.LUNMapping{{LU: lu}}
	if n.all.beside != nil {
		luns = append(luns, n.all.beside(n.index)...)
	}
	for _, l := range luns {
		s.AddLogicalUnit(l.LU, 0)
	}
	rules := []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: luns}}
	if _, err := s.AddTarget(target.TargetConfig{Name: testTarget, PortalGroups: []uint16{n.tag()}, Access: rules}); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(target.PortalGroup{Tag: n.tag(), Portals: portals(t, s, "127.0.0.1:0")}); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown of %s: %v", n.name, err)
		}
	})
	t.Cleanup(stop)
	n.rig = &rig{t: t, server: s, lu: lu, addr: s.Addrs(n.tag())[0].String(), stop: stop}
}

func (n *relayNode) tag() uint16 { return uint16(n.index + 1) }

func (n *relayNode) elsewhere() (all []target.Elsewhere) {
	for _, o := range n.all.nodes {
		if o != n {
			all = append(all, target.Elsewhere{Tag: o.tag(), Beside: n.tag(), Addresses: []string{o.addr}})
		}
	}
	return all
}

// access is how the disk is reached while a node serves it.
func (r *relayRig) access(owner int) map[uint16]scsi.PortAccess {
	all := map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Standby}}
	for _, n := range r.nodes {
		all[n.tag()] = scsi.PortAccess{State: scsi.ActiveNonOptimized}
	}
	all[r.nodes[owner].tag()] = scsi.PortAccess{}
	return all
}

// hold lets commands wait at all nodes.
func (r *relayRig) hold() {
	for _, n := range r.nodes {
		n.lu.Hold(relayPatience)
	}
}

// settle has a node serve the disk: first it knows, then the others hear of it, in the order
// given.
func (r *relayRig) settle(owner int, order ...int) {
	r.fence.Lock()
	r.owner.Store(int32(owner))
	r.fence.Unlock()
	r.epoch++
	access := r.access(owner)
	for _, n := range r.nodes {
		n.lu.Resign()
	}
	r.nodes[owner].lu.Succeed(r.left.Load())
	r.nodes[owner].lu.Settle(maps.Clone(access), nil)
	for _, i := range order {
		if n := r.nodes[i]; i != owner {
			n.lu.Settle(maps.Clone(access), testCarrier{n.links, r.nodes[owner].name, r.epoch, n})
			n.server.ForgetRelayed(n.lu, "", func() {})
		}
	}
}

// move gives the disk to a node, in order.
func (r *relayRig) move(to int, order ...int) {
	r.t.Helper()
	if len(order) == 0 {
		for i := range r.nodes {
			order = append(order, i)
		}
	}
	r.hold()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.nodes[r.owner.Load()].lu.Quiesce(ctx); err != nil {
		r.t.Errorf("commands have not ended: %v", err)
	}
	r.settle(to, order...)
}

// resign ends the time in which the node serves the disk.
func (n *relayNode) resign() {
	n.lu.Resign()
	n.server.ForgetRelayed(n.lu, "", func() {})
}

// ready logs in and takes the attentions.
func (n *relayNode) ready(isid byte) *initiator.Conn {
	n.all.t.Helper()
	return n.login(initiator.Options{ISID: [6]byte{0x80, 1: isid}})
}
