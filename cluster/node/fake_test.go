package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
)

const (
	leaseTime   = 2 * time.Second
	suspectTime = time.Second
	holdTime    = 8 * time.Second
	muteTime    = 5 * time.Second
)

// site is a cluster of nodes that share Ceph.
type site struct {
	t      *testing.T
	net    *mem.Network
	keys   cluster.Keys
	mu     sync.Mutex
	locks  map[string]string // by volume: instances
	fence  map[string]bool
	tries  int                  // of instances
	stuck  map[string]bool      // volumes that Ceph does not answer for, and nodes
	silent map[string]time.Time // since when it does not answer a node
	nodes  map[string]*Node
	disks  map[string]*disk  // by node and volume
	wires  *linktest.Network // nil: nodes have no links
	links  map[string]*link.Links
}

func newSite(t *testing.T) *site {
	return &site{
		t: t, net: mem.NewNetwork(), keys: cluster.KeysOf("prod"),
		locks: map[string]string{}, fence: map[string]bool{}, stuck: map[string]bool{}, silent: map[string]time.Time{}, nodes: map[string]*Node{}, disks: map[string]*disk{},
	}
}

// join starts a node with volumes, of which those that begin with c have a cache.
func (s *site) join(name string, volumes ...string) *Node {
	s.t.Helper()
	incarnation := rand.Text()
	var n atomic.Pointer[Node]
	var links *link.Links
	if s.wires != nil {
		c := s.wires.Config(name, incarnation)
		c.Beat, c.Silence, c.Says = suspectTime/5, suspectTime, func() []byte { return n.Load().Says() }
		links = link.New(c)
		s.links[name] = links
	}
	n.Store(Start(Config{
		State: s.net.State(name), Keys: s.keys, Node: name, Incarnation: incarnation, Links: links, Lease: leaseTime, Suspect: suspectTime, Hold: holdTime, Mute: muteTime,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	if links != nil {
		links.Watch(n.Load().Hear)
		links.Open()
		s.wires.Meet(slices.Collect(maps.Values(s.links))...)
	}
	s.nodes[name] = n.Load()
	for _, v := range volumes {
		d := &disk{site: s, node: name, volume: v}
		s.disks[name+" "+v] = d
		c := VolumeConfig{Owners: []string{"n1", "n2", "n3"}, Cached: v[0] == 'c'}
		if v == "back" {
			c.Failback = 10 * time.Second
		}
		if err := n.Load().Add(v, c, d); err != nil {
			s.t.Fatal(err)
		}
	}
	return n.Load()
}

// three starts three nodes, and waits for n1 to own all volumes.
func (s *site) three(volumes ...string) {
	s.t.Helper()
	for _, n := range []string{"n1", "n2", "n3"} {
		s.join(n, volumes...)
		for _, v := range volumes {
			s.owned(v, "n1")
		}
	}
	s.until("all hear all", func() bool {
		for n := range s.nodes {
			if st := s.status(n); len(st.Nodes) != 3 || !st.Nodes["n1"].Heard || !st.Nodes["n2"].Heard || !st.Nodes["n3"].Heard {
				return false
			}
		}
		return true
	})
}

func (s *site) status(node string) Status {
	st, err := s.nodes[node].Status()
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// owned waits until a node serves a volume and all others in reach say so.
func (s *site) owned(volume, by string, but ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s has %s", by, volume), func() bool {
		for n := range s.nodes {
			want := "standby for " + by
			if n == by {
				want = "serve"
			}
			if !slices.Contains(but, n) && s.disks[n+" "+volume].is() != want {
				return false
			}
		}
		return true
	})
}

// until waits at most for a minute, of the bubble's time.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			s.t.Fatalf("not within a minute: %s: %s", what, s.describe())
		}
	}
}

func (s *site) describe() (all string) {
	items, _ := s.net.Get("")
	for _, i := range items {
		all += fmt.Sprintf("\n%s %s", i.Key, i.Value)
	}
	for name, d := range s.disks {
		all += fmt.Sprintf("\n%s: %s", name, d.is())
	}
	return all
}

// end stops all nodes.
func (s *site) end() {
	s.net.SetQuorum(true)
	for name, n := range s.nodes {
		s.net.Cut(name, false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := n.Stop(ctx); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	for _, l := range s.links {
		_ = l.Close()
	}
	if s.wires != nil {
		s.wires.Wait()
	}
}

// disk is a volume at a node.
type disk struct {
	*site
	node, volume string
	instance     string
	open         bool
	calls        int // that wait for Ceph
	epoch        uint64
	how          string
	trust        time.Time
	served       time.Time
	history      []string
}

func (d *disk) lock() func() { d.site.mu.Lock(); return d.site.mu.Unlock }

func (d *disk) is() string { defer d.lock()(); return d.how }

// trusts is until when the node serves cached reads.
func (d *disk) trusts() time.Time { defer d.lock()(); return d.trust }

func (d *disk) called(n int) { defer d.lock()(); d.calls += n }

// answers waits as long as Ceph does not.
func (d *disk) answers(ctx context.Context) error {
	d.called(1)
	defer d.called(-1)
	for {
		unlock := d.lock()
		stuck := d.stuck[d.volume] || d.stuck[d.node]
		unlock()
		if !stuck {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrLate, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (d *disk) Connect(ctx context.Context, fenced []string) (string, error) {
	if err := d.answers(ctx); err != nil {
		return "", err
	}
	defer d.lock()()
	if d.instance == "" || d.fence[d.instance] || slices.Contains(fenced, d.instance) {
		d.tries++
		d.instance = fmt.Sprintf("%s:%d", d.node, d.tries)
	}
	return d.instance, nil
}

func (d *disk) Fence(ctx context.Context, instances []string) error {
	if err := d.answers(ctx); err != nil {
		return err
	}
	defer d.lock()()
	for _, i := range instances {
		d.fence[i] = true
	}
	return nil
}

func (d *disk) Open(ctx context.Context, c Claim) (ownership.Disk, error) {
	if err := d.answers(ctx); err != nil {
		return ownership.Disk{}, err
	}
	defer d.lock()()
	has := d.locks[d.volume]
	if has != "" && has != c.Instance && !slices.Contains(c.Fenced, has) || d.fence[c.Instance] {
		return ownership.Disk{}, errors.New("the lock is somebody else's")
	}
	d.locks[d.volume], d.open, d.epoch = c.Instance, true, c.Epoch
	return ownership.Disk{Address: c.Instance, Size: 1 << 20, BlockSize: 512}, nil
}

func (d *disk) Close(context.Context) error {
	defer d.lock()()
	if d.open = false; d.locks[d.volume] == d.instance {
		d.locks[d.volume] = ""
	}
	return nil
}

func (d *disk) Refused(address string) bool { defer d.lock()(); return d.fence[address] }

func (d *disk) Silent() (store string, since, last time.Time) {
	defer d.lock()()
	if since = d.silent[d.node]; since.IsZero() {
		last = time.Now()
	}
	return "ceph", since, last
}

func (d *disk) told(how string) {
	defer d.lock()()
	d.how = how
	d.history = append(d.history, how)
	if how == "serve" {
		d.served = time.Now()
	}
}

func (d *disk) Serve(uint64) { d.told("serve") }

func (d *disk) Hold(ownership.Record) { d.told("hold") }

func (d *disk) Standby(r ownership.Record) { d.told("standby for " + r.Node) }

func (d *disk) Trust(until time.Time) { defer d.lock()(); d.trust = until }

// write is a command at a node: whether the volume's lock is its own.
func (s *site) write(node, volume string) bool {
	d := s.disks[node+" "+volume]
	unlock := d.lock()
	ok, epoch := d.how == "serve" && s.locks[volume] == d.instance && !s.fence[d.instance], d.epoch
	lost := d.how == "serve" && !ok
	unlock()
	if lost {
		s.nodes[node].Lost(volume, epoch)
	}
	return ok
}
