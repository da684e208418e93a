package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/cache"
	"lunar/cache/tier"
	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/cluster/ownership"
	"lunar/internal/evloop"
)

// process is a node with an event thread, instances of Ceph and a cache.
type process struct {
	name    string // of the node
	road    string // to the State
	state   cluster.State
	links   *link.Links
	clients *rbd.Clients
	cache   *tier.Cache
	loop    *evloop.Loop
	node    *Node
	vessels map[string]*vessel
	goOn    chan struct{} // while it is stopped
	dead    bool          // it was killed
	left    bool          // it has left the cluster in order
	mu      sync.Mutex
	stays   []func() error // instances, until the process ends
}

// leave gives up all instances.
func (p *process) leave() (err error) {
	for _, leave := range p.stays {
		err = errors.Join(err, leave())
	}
	return err
}

// stop has the process stand still: its decisions, its event thread and its leases.
func (p *process) stop(c *chaos) {
	c.net.Cut(p.road, true)
	c.wires.CutAll(p.name, true)
	goOn := make(chan struct{})
	p.goOn = goOn
	p.loop.Post(evloop.Func(func() { <-goOn }))
	go p.node.post(func() { <-goOn })
}

// resume has it go on, its event thread first.
func (p *process) resume(c *chaos) {
	close(p.goOn)
	p.goOn = nil
	c.wires.CutAll(p.name, false)
	c.net.Cut(p.road, false)
}

// vessel is a volume at a process: an image, with a cache or without.
type vessel struct {
	*process
	image    rbd.Config
	cached   bool
	serves   atomic.Bool
	until    atomic.Int64 // on the clock of evloop.Monotonic
	store    backstore.Store
	inUse    *rbd.Store
	opened   atomic.Int64
	refused  atomic.Int64
	bypassed atomic.Int64
	thread   struct { // is the event thread's
		lane    backstore.Lane // nil: closed, or closing
		closing backstore.Lane
		running int
		idle    chan struct{}
	}
}

func (v *vessel) Connect(ctx context.Context, fenced []string) (string, error) {
	address, leave, err := v.clients.Stay(v.image.Account, fenced, patience(ctx))
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stays = append(v.stays, leave)
	return address, nil
}

func (v *vessel) Fence(ctx context.Context, instances []string) error {
	return v.clients.Fence(v.image.Account, instances, patience(ctx))
}

func patience(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	return max(time.Until(end), time.Millisecond)
}

func (v *vessel) Open(ctx context.Context, c Claim) (ownership.Disk, error) {
	if err := v.Close(ctx); err != nil {
		return ownership.Disk{}, err
	}
	image := v.image
	image.Epoch, image.Instance, image.Superseded, image.Patience = c.Epoch, c.Instance, c.Fenced, patience(ctx)
	image.Lost = func(error) { v.node.Lost(image.Image.Image, c.Epoch) }
	store, err := rbd.Open(image)
	if err != nil {
		if errors.Is(err, rbd.ErrLate) {
			err = fmt.Errorf("%w: %w", ErrLate, err)
		}
		return ownership.Disk{}, err
	}
	v.store, v.inUse = store, store
	if v.cached {
		v.store, err = v.cache.Wrap(store, tier.VolumeConfig{ID: 1, Name: image.Image.Image, Lapsed: v.lapsed})
		if err != nil {
			return ownership.Disk{}, err
		}
	}
	backstoretest.On(v.loop, func() { v.thread.lane, err = v.store.Lane(v.loop) })
	v.opened.Add(1)
	return ownership.Disk{Address: store.Address(), Size: store.Info().Size, BlockSize: 512}, err
}

// lapsed is the guard of the data path.
func (v *vessel) lapsed() bool {
	lapsed := evloop.Monotonic() >= v.until.Load()
	if lapsed {
		v.bypassed.Add(1)
	}
	return lapsed
}

func (v *vessel) Close(ctx context.Context) error {
	if v.store == nil {
		return nil
	}
	idle := make(chan struct{})
	v.loop.Post(evloop.Func(func() {
		t := &v.thread
		if t.lane != nil {
			t.closing, t.lane = t.lane, nil
		}
		t.idle = idle
		v.rest()
	}))
	select {
	case <-idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := v.store.Close()
	v.store = nil
	return err
}

// rest closes the lane when nothing is under way any more.
func (v *vessel) rest() {
	t := &v.thread
	if t.running > 0 || t.idle == nil {
		return
	}
	if t.closing != nil {
		t.closing.Close()
		t.closing = nil
	}
	close(t.idle)
	t.idle = nil
}

func (v *vessel) Refused(address string) bool { return v.clients.Refused(address) }

func (v *vessel) Silent() (store string, since, last time.Time) { return "", since, last }

func (v *vessel) Serve(uint64) { v.serves.Store(true) }

func (v *vessel) Hold(ownership.Record) { v.serves.Store(false) }

func (v *vessel) Standby(ownership.Record) { v.serves.Store(false) }

func (v *vessel) Trust(until time.Time) {
	if until.IsZero() {
		v.until.Store(0)
		return
	}
	v.until.Store(evloop.Monotonic() + int64(time.Until(until)))
}

var errRefused = errors.New("not served here")

// command does op on the event thread as a target does, and sends its error to done.
func (v *vessel) command(op *backstore.Op, done chan<- error) {
	v.loop.Post(evloop.Func(func() {
		t := &v.thread
		if !v.serves.Load() || t.lane == nil {
			v.refused.Add(1)
			done <- errRefused
			return
		}
		t.running++
		op.Done = func(op *backstore.Op) {
			t.running--
			done <- op.Err
			v.rest()
		}
		if t.lane.TryNow(op) || t.lane.Submit(op) {
			op.Done(op)
		}
	}))
}

// newCache is that of a process.
func newCache(log *slog.Logger) (*tier.Cache, error) {
	return tier.New(tier.Config{Layout: cache.Layout{BlockSize: 16 << 10, Neighbours: 2, Partitions: 2, Nodes: 1}, Bytes: 4 << 20, LUs: 4, Logger: log})
}
