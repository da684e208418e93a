package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster"
	"lunar/cluster/hearing"
	"lunar/cluster/link"
	"lunar/cluster/ownership"
)

// Config is a node's place in its cluster.
type Config struct {
	State       cluster.State
	Keys        cluster.Keys
	Node        string
	Incarnation string // of this process, unlike all before
	// Links are those to the other nodes, over which they say what Node.Says returns; nil: there
	// are none. An owner that is heard over them keeps its volumes.
	Links   *link.Links
	About   json.RawMessage   // what other nodes are to know of this one besides
	Unable  map[string]string // volumes that it could not open, and why; see Node.Tell
	Lease   time.Duration     // for how long cached reads need no word from the state
	Suspect time.Duration     // after which silence another node takes volumes without a cache
	Hold    time.Duration     // for how long Ceph may take over a step of a takeover
	Mute    time.Duration     // for how long it may not answer an owner; 0: for any time
	Logger  *slog.Logger
	// Before is called before the node has its place, at the start and after each time that
	// it was away. An error is why it has none yet. nil: there is nothing to be done.
	Before func(context.Context) error
	// Changed hears, on the goroutine that decides, that Status may say something else;
	// nil: nobody does.
	Changed func()
}

// Node is a running node. Its methods may be called by any number of goroutines, but not by
// methods of a Volume that must not wait.
type Node struct {
	config   Config
	observer *ownership.Observer
	ears     *hearing.Ears
	says     atomic.Pointer[hearing.Word]   // with the next beat
	self     atomic.Pointer[ownership.Node] // as its record is to say
	volumes  map[string]*volume
	all      bool      // machines of all volumes have something new
	tick     time.Time // when the lease is looked at again
	lease    cluster.Lease
	alone    string    // why the node has no record; empty: it has
	why      string    // the same, as it was logged
	silent   bool      // the lease was not renewed in time, and is not known to have ended
	mute     bool      // the state did not answer when a lease was asked for
	answered time.Time // when the state has renewed a lease last; at first: the start
	waiting  map[*waiter]struct{}

	ctx    context.Context // of what is done until the node ends
	inbox  chan func()
	end    context.CancelFunc
	done   chan struct{} // closed when nobody decides any more
	rest   sync.WaitGroup
	leases sync.WaitGroup
	resign context.CancelFunc // ends the leases
}

// volume is a machine and what it has to do with.
type volume struct {
	Volume
	name    string
	machine *ownership.Machine
	news    bool      // for the machine
	next    time.Time // when it wants to be asked; zero: not by itself
	gone    time.Time // since when commands wait; zero: they do not
	trouble string    // the last that was logged
	unlike  bool      // it was logged that it is another disk here
}

// Start joins the cluster.
func Start(c Config) *Node {
	ctx, end := context.WithCancel(context.Background())
	held, resign := context.WithCancel(ctx)
	n := &Node{
		config: c, observer: ownership.NewObserver(c.Keys, c.Node), ears: hearing.New(c.Links, c.Node, c.Suspect),
		volumes: map[string]*volume{}, waiting: map[*waiter]struct{}{}, alone: "it has not joined yet", why: "it has not joined yet",
		answered: time.Now(), ctx: ctx, inbox: make(chan func()), done: make(chan struct{}), end: end, resign: resign,
	}
	n.self.Store(&ownership.Node{Incarnation: c.Incarnation, About: c.About, Unable: c.Unable})
	n.says.Store(new(hearing.Word))
	go n.run(ctx)
	n.rest.Go(func() { n.watch(ctx) })
	heard := make(chan struct{})
	n.leases.Go(func() { n.keep(held, n.pulse(sync.OnceFunc(func() { close(heard) }))) })
	n.leases.Go(func() {
		select {
		case <-heard: // before, others would take this node to be dead
			n.keep(held, n.record())
		case <-held.Done():
		}
	})
	return n
}

// errStopped answers who asks a node that has stopped.
var errStopped = errors.New("the node has left its cluster")

// do has f run where decisions are made, and returns when it has.
func (n *Node) do(f func()) error {
	ran := make(chan struct{})
	if !n.post(func() { f(); close(ran) }) {
		return errStopped
	}
	<-ran
	return nil
}

// post is do that does not wait for its end.
func (n *Node) post(f func()) bool {
	select {
	case n.inbox <- f:
		return true
	case <-n.done:
		return false
	}
}

// run decides.
func (n *Node) run(ctx context.Context) {
	defer close(n.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-n.inbox:
			f()
			n.drain()
		case <-timer.C:
		}
		timer.Reset(time.Until(n.decide(time.Now())))
	}
}

// drain runs what waits, so that a burst of news is decided about once.
func (n *Node) drain() {
	for {
		select {
		case f := <-n.inbox:
			f()
		default:
			return
		}
	}
}

// renewals is how often the deadline of the lease is looked at in its time.
const renewals = 6

// margin is the part of a lease that is left unused, for clocks that run apart.
const margin = 16

// decide asks the machines that have something new, and returns when to do so again.
func (n *Node) decide(now time.Time) (next time.Time) {
	n.holds(now)
	n.observer.Links(n.ears.Linked())
	if !now.Before(n.tick) {
		n.all, n.tick = true, now.Add(n.config.Lease/renewals)
	}
	next = n.tick
	for _, v := range n.volumes {
		if n.all || v.news || !v.next.IsZero() && !now.Before(v.next) {
			v.news = false
			n.step(v, now)
		}
		if !v.next.IsZero() && v.next.Before(next) {
			next = v.next
		}
	}
	if n.all && n.config.Changed != nil {
		n.config.Changed()
	}
	if n.all {
		n.say()
	}
	n.all = false
	for w := range n.waiting {
		w.look()
	}
	return next
}

// holds tells the machines until when cached reads may be served.
func (n *Node) holds(now time.Time) {
	if n.lease == nil {
		n.observer.Holds(0, time.Time{})
		return
	}
	deadline := n.lease.Deadline()
	n.observer.Holds(n.lease.ID(), deadline.Add(-n.config.Lease/margin))
	if renewed := deadline.Add(-n.config.Lease); renewed.After(n.answered) {
		n.answered = renewed
	}
	n.listen(now)
}

// listen logs when etcd ceases to renew the lease, and when it does so again. The lease may
// be there all the same, as when etcd has no majority.
func (n *Node) listen(now time.Time) {
	silent := now.After(n.lease.Deadline())
	switch {
	case silent && !n.silent:
		n.config.Logger.Warn("etcd does not renew this node's lease: it takes no volumes over, and reads pass its cache by", "until", n.lease.Deadline())
	case n.silent && !silent:
		n.config.Logger.Info("etcd renews this node's lease again")
	}
	n.silent = silent
}

// Add has the node decide about a volume.
func (n *Node) Add(name string, c VolumeConfig, v Volume) error {
	return n.do(func() {
		m := ownership.New(ownership.Config{
			Keys: n.config.Keys, Volume: name, Node: n.config.Node, Incarnation: n.config.Incarnation,
			Owners: c.Owners, Cached: c.Cached, Failback: c.Failback, BlockSize: c.BlockSize, Image: c.Image, Revision: c.Revision,
			Stagger: n.config.Suspect / 10, Patience: n.config.Suspect, Retry: n.config.Suspect,
			Mute: n.config.Mute,
		})
		n.volumes[name] = &volume{Volume: v, name: name, machine: m, news: true}
		n.warn(n.observer.Add(name, m))
	})
}

// Change tells what is new in a volume's configuration.
func (n *Node) Change(name string, c VolumeConfig) error {
	return n.do(func() {
		if v := n.volumes[name]; v != nil {
			v.machine.Configure(c.Owners, c.Cached, c.Failback, c.Revision)
			v.news = true
		}
	})
}

// Lost tells that what was opened for an epoch is fenced. It does not wait.
func (n *Node) Lost(name string, epoch uint64) {
	go n.post(func() {
		if v := n.volumes[name]; v != nil {
			v.machine.Lost(epoch)
			v.news = true
		}
	})
}

// warn tells what in the state could not be read.
func (n *Node) warn(err error) {
	if err != nil {
		n.config.Logger.Warn("something in the cluster's state cannot be read, and counts as not there", "error", err)
	}
}
