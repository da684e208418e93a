package windows

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
)

// power is what several stores hang on: it can be cut for all of them at one instant,
// between any two changes of any of them.
type power struct {
	mu      sync.Mutex
	stores  []*powered
	changes int                      // until the cut
	cut     chan<- []*memstore.Store // nil: nobody waits for one
	seed    uint64
}

// powered is one of them.
type powered struct {
	*memstore.Store
	power *power
	fails bool // under power.mu: every operation does
}

var errBroken = errors.New("the test has broken this store")

func newPower(seed uint64, stores ...*memstore.Store) *power {
	p := &power{seed: seed}
	for _, s := range stores {
		p.stores = append(p.stores, &powered{Store: s, power: p})
	}
	return p
}

// after cuts the power after so many changes, and returns what is left of the stores.
func (p *power) after(t testing.TB, changes int) (left []*memstore.Store) {
	t.Helper()
	cut := make(chan []*memstore.Store, 1)
	p.mu.Lock()
	p.changes, p.cut = changes, cut
	p.mu.Unlock()
	select {
	case left = <-cut:
	case <-time.After(eventually.Patience):
		t.Fatalf("nobody changes anything: %d changes of %d are missing", p.missing(), changes)
	}
	return left
}

// missing is how many changes there are until the cut.
func (p *power) missing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// now cuts it at once.
func (p *power) now() []*memstore.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left()
}

func (p *power) left() (all []*memstore.Store) {
	for _, s := range p.stores {
		p.seed++
		all = append(all, s.CrashClone(p.seed))
	}
	return all
}

// breaks has a store fail, or not any more.
func (s *powered) breaks(fails bool) {
	s.power.mu.Lock()
	defer s.power.mu.Unlock()
	s.fails = fails
}

// Lane implements backstore.Store.
func (s *powered) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := s.Store.Lane(l)
	return &poweredLane{s, inner, l}, err
}

type poweredLane struct {
	*powered
	inner backstore.Lane
	loop  *evloop.Loop
}

// TryNow implements backstore.Lane.
func (l *poweredLane) TryNow(*backstore.Op) bool { return false }

// Submit implements backstore.Lane.
func (l *poweredLane) Submit(op *backstore.Op) bool {
	l.loop.Post(evloop.Func(func() {
		l.do(op)
		op.Done(op)
	}))
	return false
}

func (l *poweredLane) do(op *backstore.Op) {
	p := l.power
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil && (op.Kind.Changes() || op.Kind == backstore.Flush) {
		if p.changes--; p.changes <= 0 {
			p.cut <- p.left()
			p.cut = nil
		}
	}
	if op.Err = errBroken; !l.fails {
		l.inner.TryNow(op)
	}
}

// Close implements backstore.Lane and backstore.Store.
func (l *poweredLane) Close() {}

// owner changes and reads sectors that nobody else does.
type owner struct {
	rng      *rand.Rand
	client   *backstoretest.Client
	ledger   *backstoretest.Ledger
	first, n int // sectors

	store backstore.Store // that one of them resizes, behind what they use; nil: nobody does
	size  int64
}

// step does one thing. An error of the store ends nothing: it may be broken.
func (o *owner) step() error {
	if o.store != nil && o.rng.IntN(50) == 0 {
		if err := backstore.Resize(o.store, o.size+o.rng.Int64N(8)<<18); err != nil {
			return fmt.Errorf("resize: %w", err)
		}
	}
	count := 1 + o.rng.IntN(16)
	first := o.first + o.rng.IntN(o.n-count)
	op := backstore.Op{Kind: backstore.Write, Off: int64(first) * memstore.Sector, FUA: o.rng.IntN(4) == 0}
	switch o.rng.IntN(10) {
	case 0:
		if o.client.Do(backstore.Op{Kind: backstore.Flush}) == nil {
			o.ledger.Flushed(o.first, o.n)
		}
		return nil
	case 1, 2, 3:
		data := backstoretest.Buffer(count * memstore.Sector)
		if err := o.client.Do(backstore.Op{Kind: backstore.Read, Off: op.Off, Data: data}); err != nil {
			return nil
		}
		return o.ledger.Read(data, first)
	case 4:
		op.Kind, op.Len = backstore.WriteZeroes, int64(count*memstore.Sector)
	case 5:
		op.Kind, op.Len = backstore.Discard, int64(count*memstore.Sector)
	}
	if op.Kind == backstore.Write {
		op.Data = backstoretest.Buffer(count * memstore.Sector)
		o.ledger.Write(op.Data, first)
	} else {
		o.ledger.Zero(first, count)
	}
	if o.client.Run(&op) == nil {
		o.ledger.Acknowledged(first, count, op.FUA)
	}
	return nil
}

// owners are several at work.
type owners struct {
	ledger *backstoretest.Ledger
	group  sync.WaitGroup
	quit   chan struct{}
	end    sync.Once
	failed chan error
}

// resized is work of which one owner changes the size of the store.
func resized(t testing.TB, s backstore.Store, size int64, seed uint64, n int) *owners {
	return worked(t, s, size, seed, n, s)
}

// work has n owners change parts of a store that lie apart, until they are stopped.
func work(t testing.TB, s backstore.Store, size int64, seed uint64, n int) *owners {
	return worked(t, s, size, seed, n, nil)
}

func worked(t testing.TB, s backstore.Store, size int64, seed uint64, n int, resized backstore.Store) *owners {
	sectors := int(size / memstore.Sector)
	w := &owners{ledger: backstoretest.NewLedger(sectors), quit: make(chan struct{}), failed: make(chan error, n)}
	for i := range n {
		o := &owner{
			rng: rand.New(rand.NewPCG(seed, uint64(i))), ledger: w.ledger,
			client: backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false)),
			first:  i*sectors/n + i*7, n: 96, size: size,
		}
		if i == 0 {
			o.store = resized
		}
		w.group.Go(func() {
			for {
				select {
				case <-w.quit:
					return
				default:
				}
				if err := o.step(); err != nil {
					w.failed <- fmt.Errorf("owner %d: %w", i, err)
					return
				}
			}
		})
	}
	t.Cleanup(w.rest) // before the loops end that they use, also when the test has failed
	return w
}

// rest waits for the owners.
func (w *owners) rest() {
	w.end.Do(func() { close(w.quit) })
	w.group.Wait()
}

// stop waits for the owners and returns the first thing that they found wrong.
func (w *owners) stop() error {
	w.rest()
	select {
	case err := <-w.failed:
		return err
	default:
		return nil
	}
}
