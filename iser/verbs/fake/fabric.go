package fake

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/iser/verbs"
)

// T is what the fabric needs of a test.
type T interface {
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// Options of a Fabric.
type Options struct {
	// Seed of the order in which things happen.
	Seed uint64

	// Manual leaves it to the test when something happens: with Step and
	// Settle. Otherwise a goroutine of the fabric does it.
	Manual bool

	// Fault is asked before a send queue's entry is carried out; a status
	// other than StatusOK fails the QP with it. It must not call the fabric.
	Fault func(Work) verbs.Status

	// Posted is told of every entry that a send queue takes. It must not call the
	// fabric.
	Posted func(Work)

	// Deaf has queue pairs that have failed keep their receives, until they are
	// destroyed.
	Deaf bool

	// Refuse is asked at the start of every control call, by the name of the
	// library's function ("ibv_reg_mr", "rdma_accept", ...); an error is what
	// the call returns. It must not call the fabric.
	Refuse func(call string) error
}

// Work is an entry of a send queue that is about to be carried out, or is posted.
type Work struct {
	Host     string
	QP       uint32
	Number   uint64 // of the entry among those of its QP, from 0
	WR       verbs.WR
	Inline   []byte // what it sends, if it is inline; valid during the call
	Receives int    // of its QP whose completions have not been polled
	Polled   uint64 // those whose completions have been
}

// place is where a listener is.
type place struct {
	host *Host
	addr netip.AddrPort
}

// Fabric is a network of hosts with RDMA devices.
type Fabric struct {
	t       T
	options Options

	mu        sync.Mutex
	wake      sync.Cond
	random    *rand.Rand
	listeners map[place]*id
	devices   []*Device
	qps       []*qp
	mail      []message
	objects   map[any]string // that exist, by what they are
	runnable  []int          // scratch of step: indices of qps, and -1-index of mail
	breaches  []string
	lastQP    uint32
	lastPort  uint16
	closed    bool
	ended     chan struct{}
}

// New makes a fabric that ends with the test, and fails it for every breach
// that Breaches has not taken, and for objects that were not destroyed.
func New(t T, o Options) *Fabric {
	f := &Fabric{
		t: t, options: o, random: rand.New(rand.NewPCG(o.Seed, 0x15e5)),
		listeners: map[place]*id{}, objects: map[any]string{}, lastQP: 16, lastPort: 40000,
		ended: make(chan struct{}),
	}
	f.wake.L = &f.mu
	if o.Manual {
		close(f.ended)
	} else {
		go f.run()
	}
	t.Cleanup(f.close)
	return f
}

// Breaches takes what was done against the rules so far, so that it does not
// fail the test.
func (f *Fabric) Breaches() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.breaches
	f.breaches = nil
	return taken
}

// Step lets one thing happen; false if nothing can.
func (f *Fabric) Step() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.step()
}

// Settle lets things happen until nothing can.
func (f *Fabric) Settle() {
	for f.Step() {
	}
}

func (f *Fabric) breach(format string, args ...any) {
	f.breaches = append(f.breaches, fmt.Sprintf(format, args...))
}

// enter begins a control call: it locks the fabric, and tells whether the test
// wants the call to fail.
func (f *Fabric) enter(call string) error {
	f.mu.Lock()
	if f.options.Refuse != nil {
		if err := f.options.Refuse(call); err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
	}
	return nil
}

func (f *Fabric) run() {
	f.mu.Lock()
	defer close(f.ended)
	defer f.mu.Unlock()
	for !f.closed {
		if f.step() {
			continue
		}
		if in := f.opens(); in > 0 {
			time.AfterFunc(in, f.wake.Broadcast)
		}
		f.wake.Wait()
	}
}

// step carries out one thing that can happen, chosen at random. When there is
// none, what waits for a peer that is gone has waited long enough.
func (f *Fabric) step() bool {
	f.runnable = f.runnable[:0]
	for i, q := range f.qps {
		if q.canRun() {
			f.runnable = append(f.runnable, i)
		}
	}
	for i := range f.mail {
		if f.deliverable(i) {
			f.runnable = append(f.runnable, -1-i)
		}
	}
	if len(f.runnable) == 0 {
		return f.timeOut()
	}
	if chosen := f.runnable[f.random.IntN(len(f.runnable))]; chosen >= 0 {
		f.qps[chosen].run()
	} else {
		m := f.mail[-1-chosen]
		f.mail = slices.Delete(f.mail, -1-chosen, -chosen)
		f.deliver(m)
	}
	return true
}

// timeOut fails what waits for a peer that does not answer.
func (f *Fabric) timeOut() (any bool) {
	for _, q := range f.qps {
		if q.state == ready && q.unanswered() {
			q.failHead(verbs.StatusRetryExceeded)
			any = true
		}
	}
	return any
}

func (f *Fabric) close() {
	f.mu.Lock()
	f.closed = true
	f.wake.Broadcast()
	f.mu.Unlock()
	<-f.ended
	for _, b := range f.Breaches() {
		f.t.Errorf("RDMA: %s", b)
	}
	left := map[string]int{}
	for _, what := range f.objects {
		left[what]++
	}
	for _, d := range f.devices {
		d.closeFD()
	}
	if len(left) > 0 {
		f.t.Errorf("RDMA: not destroyed: %s", strings.TrimPrefix(fmt.Sprint(left), "map"))
	}
}
