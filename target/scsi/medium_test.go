package scsi

import (
	"cmp"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/evloop"
)

// medium is a store in memory whose lanes end operations whenever a test
// wants.
type medium struct {
	info backstore.Info
	fail func(*backstore.Op) error // asked before each operation; nil means that none fails

	mu struct {
		sync.Mutex
		bytes   []byte
		flushes int
		log     []backstore.Op
	}
}

func newMedium(size int) *medium {
	m := &medium{info: diskInfo()}
	m.info.Size = int64(size)
	m.mu.bytes = make([]byte, size)
	return m
}

func (m *medium) Info() backstore.Info                      { return m.info }
func (m *medium) Lane(*evloop.Loop) (backstore.Lane, error) { return nil, errors.New("no lane") }
func (m *medium) Close() error                              { return nil }

// perform makes an operation, with its result in op.Err.
func (m *medium) perform(op *backstore.Op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.log = append(m.mu.log, backstore.Op{Kind: op.Kind, FUA: op.FUA, Off: op.Off, Len: op.Len})
	if m.fail != nil {
		if op.Err = m.fail(op); op.Err != nil {
			return
		}
	}
	if op.Off < 0 || op.Len < 0 || op.Off+op.Len > int64(len(m.mu.bytes)) {
		panic("operation beyond the medium")
	}
	part := m.mu.bytes[op.Off : op.Off+op.Len]
	switch op.Kind {
	case backstore.Read:
		copy(op.Data, part)
	case backstore.Write:
		copy(part, op.Data)
	case backstore.Flush:
		m.mu.flushes++
	case backstore.Discard, backstore.WriteZeroes:
		clear(part)
	case backstore.Erase:
		for i := range part {
			part[i] ^= 0x5c
		}
	case backstore.Map:
		m.extent(op)
	}
}

// tear does the first half of a write, which is what the medium may show without what
// guards it.
func (m *medium) tear(op *backstore.Op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if end := op.Off + op.Len; op.Off >= 0 && end <= int64(len(m.mu.bytes)) {
		copy(m.mu.bytes[op.Off:end], op.Data[:len(op.Data)/2])
	}
}

// extent reports the run of pages from op.Off on that do or do not hold
// something.
func (m *medium) extent(op *backstore.Op) {
	const page = 4096
	used := func(off int64) bool {
		start := off &^ (page - 1)
		return !isZero(m.mu.bytes[start:min(start+page, int64(len(m.mu.bytes)))])
	}
	end, at := op.Off+op.Len, op.Off
	op.Mapped = used(at)
	for at < end && used(at) == op.Mapped {
		at = min(at&^(page-1)+page, end)
	}
	op.Len = at - op.Off
}

// ops returns the operations so far.
func (m *medium) ops() []backstore.Op {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.log
}

// thread is an event thread whose events happen in an order that rng decides.
// It is the port and the lane of its commands.
type thread struct {
	t      testing.TB
	medium *medium
	pool   *buf.Pool
	rng    *rand.Rand
	events []func() // may happen in any order

	// How often in 100 something happens later rather than at once.
	starve, defers, late, lends, dear int

	part int64 // bytes that a command may move in one turn; 0: any

	moved  int64 // of what may be moved within the server until the next turn
	within int64 // all of that

	lent int // loans that were not given back

	reach      []*Nexus // what copies may use
	closing    *Nexus   // of those, one whose unit cannot be held any more
	background []*exchange
	refuses    bool // to begin anything in the background

	inbox struct {
		sync.Mutex
		tasks []Task
		ready chan struct{}
	}
}

func newThread(t testing.TB, m *medium, seed uint64) *thread {
	pool, err := buf.NewPool(4<<20, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	th := &thread{t: t, medium: m, pool: pool, rng: rand.New(rand.NewPCG(seed, 1))}
	th.inbox.ready = make(chan struct{}, 1)
	t.Cleanup(func() {
		for th.turn() {
		}
		if th.lent != 0 {
			t.Errorf("%d loans were not given back", th.lent)
		}
	})
	return th
}

func (th *thread) chance(percent int) bool { return th.rng.IntN(100) < percent }

func (th *thread) later(f func()) { th.events = append(th.events, f) }

// turn makes one event happen; false says that there was none.
func (th *thread) turn() bool {
	th.inbox.Lock()
	tasks := th.inbox.tasks
	th.inbox.tasks = nil
	th.inbox.Unlock()
	for _, t := range tasks {
		th.later(t.Run)
	}
	if len(th.events) == 0 {
		return false
	}
	i := th.rng.IntN(len(th.events))
	f := th.events[i]
	th.events[i] = th.events[len(th.events)-1]
	th.events = th.events[:len(th.events)-1]
	f()
	return true
}

// wake is Port.Wake.
func (th *thread) wake(t Task) {
	th.inbox.Lock()
	th.inbox.tasks = append(th.inbox.tasks, t)
	th.inbox.Unlock()
	select {
	case th.inbox.ready <- struct{}{}:
	default:
	}
}

// TryNow implements backstore.Lane.
func (th *thread) TryNow(op *backstore.Op) bool { return th.tryNow(th.medium, op) }

func (th *thread) tryNow(m *medium, op *backstore.Op) bool {
	if op.Atomic || th.chance(th.defers) {
		return false
	}
	m.perform(op)
	return true
}

// Submit implements backstore.Lane.
func (th *thread) Submit(op *backstore.Op) bool { return th.submit(th.medium, op) }

func (th *thread) submit(m *medium, op *backstore.Op) bool {
	if len(op.Data) > 0 && uintptr(unsafe.Pointer(&op.Data[0]))%buf.PageSize != 0 {
		th.t.Error("data that is not page-aligned")
	}
	if !op.Atomic && th.chance(50) && !th.chance(th.defers) {
		m.perform(op)
		return true
	}
	if op.Atomic {
		m.tear(op)
	}
	th.later(func() {
		m.perform(op)
		op.Done(op)
	})
	return false
}

// Close implements backstore.Lane.
func (th *thread) Close() {}

// exchange is the transport's side of one command.
type exchange struct {
	*thread
	c         *Command
	out       []byte // Data-Out
	in        []byte // Data-In so far
	ends      int
	last      bool // ended by SendDataIn
	asked     uint32
	receiving int
	starving  bool
	lost      bool     // no more Data-Out comes
	landing   []byte   // buffer that the next ReceiveDataOut is for
	awaited   []func() // called at its end
}

// Alloc implements Port.
func (x *exchange) Alloc(c *Command, n int) *buf.Ref {
	x.alive()
	if n <= 0 || n > SegmentSize {
		x.t.Fatalf("Alloc of %d bytes", n)
	}
	if x.starving {
		x.t.Fatal("Alloc before Resume")
	}
	if !x.chance(x.starve) {
		if ref := x.pool.Get(n); ref != nil {
			if x.landing = nil; c.Landing() {
				x.landing = ref.Bytes()
			}
			return ref
		}
	}
	x.starving = true
	x.later(func() {
		x.starving = false
		if x.ends == 0 {
			c.Resume()
		}
	})
	return nil
}

// Charge implements Port.
func (x *exchange) Charge(_ *Command, ref *buf.Ref) {
	x.alive()
	if !ref.Lent() {
		x.t.Error("a buffer of the pool was charged again")
	}
}

// Pay implements Payments.
func (x *exchange) Pay(c *Command, bytes int64) bool {
	x.alive()
	if bytes <= 0 || bytes > 2*SegmentSize || c.copying().paying {
		x.t.Errorf("a payment of %d bytes, while another is pending: %v", bytes, c.copying().paying)
	}
	if !x.chance(x.dear) {
		return true
	}
	x.later(func() {
		if x.ends == 0 {
			c.Paid()
		}
	})
	return false
}

// Affords implements Port.
func (x *exchange) Affords(*Command, int) bool {
	x.alive()
	return !x.chance(x.starve)
}

// Background implements Port.
func (x *exchange) Background(c *Command, start func(*Command)) bool {
	x.alive()
	if x.refuses {
		return false
	}
	b := &exchange{thread: x.thread, c: &Command{CDB: c.CDB, Nexus: c.Nexus, Lane: c.Lane}}
	b.c.Port = b
	x.background = append(x.background, b)
	b.c.Adopt(c, start)
	return true
}

// Reach implements Port.
func (x *exchange) Reach(_ *Command, match func(*Nexus) bool) (CSCD, bool) {
	x.alive()
	for _, n := range x.reach {
		if match(n) && n != x.closing {
			return CSCD{Nexus: n, Lane: x.laneOf(n)}, true
		}
	}
	return CSCD{}, false
}

// SendDataIn implements Port. What it is given must not change until the
// reference is released, some time later.
func (x *exchange) SendDataIn(c *Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	x.alive()
	if int(off) != len(x.in) || len(data) == 0 {
		x.t.Fatalf("Data-In of %d bytes at %d after %d bytes", len(data), off, len(x.in))
	}
	x.in = append(x.in, data...)
	if ref != nil {
		sent := x.in[off:]
		x.later(func() {
			if string(sent) != string(data) {
				x.t.Error("Data-In changed while it was being sent")
			}
			ref.Release()
		})
	}
	if last {
		x.last = true
		x.end()
	}
}

// ReceiveDataOut implements Port.
func (x *exchange) ReceiveDataOut(c *Command, off uint32, dst []byte) {
	x.alive()
	if off != x.asked || len(dst) == 0 || int(off)+len(dst) > len(x.out) {
		x.t.Fatalf("Data-Out of %d bytes at %d of %d asked for after %d", len(dst), off, len(x.out), x.asked)
	}
	x.asked += uint32(len(dst))
	if l := x.landing; l != nil && (&l[0] != &dst[0] || len(l) != len(dst)) {
		x.t.Fatalf("Data-Out into %d bytes, not into the buffer of %d that it was to land in", len(dst), len(l))
	}
	x.landing = nil
	if !x.chance(x.late) {
		copy(dst, x.out[off:])
		c.DataOut(off, uint32(len(dst)))
		return
	}
	x.receiving++
	x.later(func() {
		if x.ends > 0 || x.lost {
			return
		}
		x.receiving--
		copy(dst, x.out[off:])
		c.DataOut(off, uint32(len(dst)))
	})
}

// Wake implements Port.
func (*exchange) Contain(*Command) {}

func (x *exchange) Wake(_ *Command, t Task)  { x.wake(t) }
func (x *exchange) Again(_ *Command, t Task) { x.wake(t) }
func (x *exchange) Turn(*Command) int64      { return cmp.Or(x.part, math.MaxInt64) }

// Within implements Port: what is moved within the server waits now and then.
func (x *exchange) Within(_ *Command, n int64, t Task) bool {
	if x.moved >= maxInline {
		x.moved = 0
		x.wake(t)
		return false
	}
	x.moved += n
	x.within += n
	return true
}

// Complete implements Port.
func (x *exchange) Complete(c *Command) {
	x.alive()
	if x.receiving > 0 && !c.Aborted() {
		x.t.Error("ended while Data-Out was on its way")
	}
	x.end()
}

func (x *exchange) end() {
	x.ends++
	for _, f := range x.awaited {
		f()
	}
}

func (x *exchange) alive() {
	if x.ends > 0 {
		x.t.Fatal("command used after its end")
	}
}

// start begins a command whose initiator sends out or, if there is none,
// expects in bytes.
func (th *thread) start(n *Nexus, cdb, out []byte, in uint32) *exchange {
	x := &exchange{thread: th, out: out, c: new(Command)}
	x.begin(n, cdb, in)
	return x
}

func (x *exchange) begin(n *Nexus, cdb []byte, in uint32) {
	c := x.c
	c.CDB = CDB{}
	copy(c.CDB[:], cdb)
	c.CDBLength, c.Nexus, c.Lane, c.Port = 16, n, x.laneOf(n), x
	if len(x.out) > 0 {
		in = 0
	}
	c.HasOut, c.HasIn, c.EDTL = len(x.out) > 0, in > 0, max(uint32(len(x.out)), in)
	if c.HasOut && !x.chance(x.late) {
		c.Immediate = x.out
	}
	n.LU.Execute(c)
}

// finish lets events happen until the command has ended and nothing is left.
func (x *exchange) finish() *exchange {
	x.t.Helper()
	for x.turn() || x.ends == 0 && x.c.running > 0 && x.woken() {
	}
	if x.ends != 1 {
		x.t.Fatalf("CDB %x ended %d times", x.c.CDB[:16], x.ends)
	}
	if n := x.pool.InUse(); n != 0 {
		x.t.Fatalf("CDB %x leaked %d buffers", x.c.CDB[:16], n)
	}
	return x
}

// woken waits until another goroutine has something for the thread.
func (th *thread) woken() bool {
	select {
	case <-th.inbox.ready:
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

// newUnit makes a logical unit of m and a nexus without attentions.
func newUnit(t testing.TB, m *medium, config LUConfig) *Nexus {
	t.Helper()
	config.Store, config.Logger = m, testLogger(io.Discard)
	lu, err := NewLogicalUnit(config)
	if err != nil {
		t.Fatal(err)
	}
	n := &Nexus{LU: lu, Map: func() []uint64 { return []uint64{0} }}
	lu.Attach(n)
	n.takeAttention()
	return n
}
