package mem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lunar/cluster"
)

// Patience is how long a request is under way at most, as with etcd.
const Patience = time.Second

// Network is a Store, and nodes that reach it over what may go wrong.
type Network struct {
	*Store
	// Now is the clock of the members, by which leases end; nil: time.Now. It is set
	// before the first State.
	Now func() time.Time

	mu       sync.Mutex
	noQuorum bool
	roads    map[string]*road
	mended   chan struct{} // closed when something that was cut is no more
	ends     *time.Timer   // of leases
}

// road is how a node reaches the members.
type road struct {
	cut    bool
	delay  func() time.Duration // of each request and each answer; nil: none
	losing func() bool          // whether the next answer is lost; nil: none is
}

// NewNetwork returns one in which all goes well.
func NewNetwork() *Network {
	return &Network{Store: NewStore(), roads: map[string]*road{}, mended: make(chan struct{})}
}

// to changes the road of a node.
func (n *Network) to(node string, change func(*road)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.roads[node] == nil {
		n.roads[node] = &road{}
	}
	change(n.roads[node])
	close(n.mended)
	n.mended = make(chan struct{})
}

// Cut has a node reach no member, or reach them again.
func (n *Network) Cut(node string, cut bool) { n.to(node, func(r *road) { r.cut = cut }) }

// Delay has each request and each answer of a node take as long as delay says, which must
// be safe for concurrent use.
func (n *Network) Delay(node string, delay func() time.Duration) {
	n.to(node, func(r *road) { r.delay = delay })
}

// Lose has answers to a node be lost for which losing, which must be safe for concurrent
// use, returns true: what was asked for happens.
func (n *Network) Lose(node string, losing func() bool) {
	n.to(node, func(r *road) { r.losing = losing })
}

// SetQuorum takes the quorum away, or gives it back, which renews all leases.
func (n *Network) SetQuorum(there bool) {
	n.mu.Lock()
	n.noQuorum = !there
	close(n.mended)
	n.mended = make(chan struct{})
	n.mu.Unlock()
	if there {
		n.Renew(n.now())
		n.watchLeases()
	}
}

func (n *Network) now() time.Time {
	if n.Now == nil {
		return time.Now()
	}
	return n.Now()
}

// reach returns the road of a node, and whether it leads to a quorum; else a channel
// that is closed when it may.
func (n *Network) reach(node string) (r road, open bool, mended <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if there := n.roads[node]; there != nil {
		r = *there
	}
	return r, !r.cut && !n.noQuorum, n.mended
}

func (r road) takes() time.Duration {
	if r.delay == nil {
		return 0
	}
	return r.delay()
}

// ask sends a request and awaits its answer. It fails with what do returns, ErrNoQuorum
// if it was not sent, and ErrUnknown. What nothing delays takes no time: in real time a machine that
// stands still for longer than Patience loses no answer.
func (n *Network) ask(ctx context.Context, node string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	answer, lost := make(chan error, 1), make(chan struct{})
	r, open, _ := n.reach(node)
	if open {
		after(r.takes(), func() { n.arrive(node, do, answer, lost) })
	}
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case err := <-answer:
		return err
	case <-limit.C:
	case <-ctx.Done():
	}
	if open && r.delay == nil {
		select {
		case err := <-answer:
			return err
		case <-lost:
		case <-ctx.Done():
		}
	}
	if !open {
		return fmt.Errorf("%s: %w", node, cluster.ErrNoQuorum)
	}
	return fmt.Errorf("%s: %w", node, errors.Join(cluster.ErrUnknown, ctx.Err()))
}

// after has a goroutine run f at that time from now. With a timer that is due at once two
// goroutines of a test in virtual time would use one context of the race detector, which may
// crash (go1.26, runtime.timer.modify).
func after(d time.Duration, f func()) {
	if d <= 0 {
		go f()
		return
	}
	time.AfterFunc(d, f)
}

// arrive does what was asked, unless the request was lost on its way. It closes lost where no answer
// comes.
func (n *Network) arrive(node string, do func() error, answer chan<- error, lost chan<- struct{}) {
	r, open, _ := n.reach(node)
	if !open {
		close(lost)
		return
	}
	err := do()
	if r.losing != nil && r.losing() {
		close(lost)
		return
	}
	after(r.takes(), func() {
		if _, open, _ := n.reach(node); open {
			answer <- err
			return
		}
		close(lost)
	})
}

// watchLeases has leases end when their time is over, as long as there is a quorum.
func (n *Network) watchLeases() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends != nil {
		n.ends.Stop()
		n.ends = nil
	}
	first := n.NextEnd()
	if first.IsZero() || n.noQuorum {
		return
	}
	n.ends = time.AfterFunc(first.Sub(n.now()), func() {
		if _, open, _ := n.reach(""); open {
			n.Expire(n.now())
		}
		n.watchLeases()
	})
}
