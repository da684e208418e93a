package isertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

const (
	isrHeader   = 28
	bhsLength   = 48
	messageHead = isrHeader + bhsLength
	loginBuffer = messageHead + 8192
	fullBuffer  = messageHead + 128
	// commands is how many commands ib_iser has buffers for.
	commands = 128
)

// Options of a Wire.
type Options struct {
	Portal     netip.AddrPort
	Invalidate bool // the target may invalidate keys
	Hollow     bool // immediate data are announced and not sent, as by libiscsi before 1.20
	Depth      int  // RDMA Reads that the target may have under way; 0: as many as the device can, -1: none
}

// Wire is the initiator's end of a connection. It implements io.ReadWriteCloser and
// has deadlines.
type Wire struct {
	options Options
	device  *fake.Device
	events  verbs.EventChannel
	pd      verbs.PD
	ch      verbs.CompChannel
	cq      verbs.CQ
	id      verbs.ID
	qp      verbs.QP
	stop    int // eventfd
	begun   begun
	ended   chan struct{}

	mu        sync.Mutex
	cond      *sync.Cond
	out       []byte // bytes of PDUs that are not whole
	in        []byte // what Read returns
	err       error
	deadline  time.Time
	posted    map[uint64]buffer
	lastID    uint64
	sending   map[uint64]verbs.MR
	tasks     map[uint32]*task
	window    [8]byte // ExpCmdSN and MaxCmdSN, as the target last told
	statSN    uint32  // the next one
	burst     int     // MaxBurstLength
	r2ts      int     // MaxOutstandingR2T
	lastTag   uint32  // of an R2T
	segment   int     // MaxRecvDataSegmentLength of the initiator
	full      bool    // full feature phase of a normal session
	discovery bool    // a discovery session
	refused   bool    // the target does not want its keys invalidated
	driven    bool    // a Driver takes the completions
	Counts    Counts
}

// Counts are what a Wire has seen.
type Counts struct {
	Sends       int // of the target
	Invalidated int // of them, those that invalidated a key
}

// Invalidated is how many SENDs of the target have invalidated a key.
func (w *Wire) Invalidated() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Counts.Invalidated
}

// buffer is a posted receive.
type buffer struct {
	mem []byte
	mr  verbs.MR
}

func newWire(h *fake.Host, o Options) *Wire {
	w := &Wire{
		options: o, device: h.Device(0), ended: make(chan struct{}), posted: map[uint64]buffer{}, sending: map[uint64]verbs.MR{},
		tasks: map[uint32]*task{}, burst: 262144, r2ts: 1, segment: 8192,
	}
	w.cond = sync.NewCond(&w.mu)
	return w
}

// Dial connects from a host's first device to a portal.
func Dial(h *fake.Host, o Options) (*Wire, error) {
	w := newWire(h, o)
	if err := w.open(h); err != nil {
		return nil, err
	}
	if err := w.connect(); err != nil {
		w.destroy()
		return nil, err
	}
	go w.run()
	return w, nil
}

func (w *Wire) open(h *fake.Host) (err error) {
	steps := []func() error{
		func() (err error) { w.events, err = h.OpenEvents(); return err },
		func() (err error) { w.pd, err = w.device.AllocPD(); return err },
		func() (err error) { w.ch, err = w.device.OpenCompletions(); return err },
		func() (err error) { w.cq, err = w.device.CreateCQ(4096, w.ch, 0); return err },
		func() (err error) { w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); return err },
		func() (err error) { w.begun.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC); return err },
		func() (err error) { w.id, err = w.events.Resolve(w.options.Portal, time.Second); return err },
	}
	for _, step := range steps {
		if err = step(); err != nil {
			return err
		}
	}
	w.qp, err = w.id.CreateQP(w.pd, w.cq, verbs.QPLimits{SendWR: 512, RecvWR: 512, SendSGE: 1})
	return err
}

// connect asks for the connection as ib_iser does.
func (w *Wire) connect() error {
	depth := w.options.Depth
	if depth == 0 {
		depth = w.device.Caps().MaxResponder
	}
	flags := byte(0xc0)
	if w.options.Invalidate {
		flags = 0x80
	}
	err := w.id.Connect(verbs.ConnParam{InitiatorDepth: 1, Responder: uint8(max(depth, 0)), RNRRetry: 6, Retry: 7, Private: []byte{flags, 0, 0, 0}})
	if err != nil {
		return err
	}
	for {
		var e verbs.Event
		ok, err := w.events.Next(&e)
		switch {
		case err != nil:
			return err
		case !ok:
			if err := wait(w.events.FD()); err != nil {
				return err
			}
		case e.Type == verbs.EventEstablished:
			w.refused = e.Private[0]&0x40 != 0
			return nil
		default:
			return fmt.Errorf("connect: %v %d", e.Type, e.Status)
		}
	}
}

// wait waits until one of the descriptors is readable.
func wait(fds ...int) error {
	var poll []unix.PollFd
	for _, fd := range fds {
		poll = append(poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for {
		n, err := unix.Poll(poll, 10000)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && n == 0:
			return os.ErrDeadlineExceeded
		default:
			return err
		}
	}
}

// run takes completions and events until the end.
func (w *Wire) run() {
	defer close(w.ended)
	for w.turn() && !w.isDriven() {
		_ = wait(w.ch.FD(), w.events.FD(), w.begun.fd, w.stop) // a time-out only looks again
	}
}

func (w *Wire) isDriven() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.driven
}

// turn takes what is there; false: the connection is over, and what was sent is flushed.
// Receives that were posted behind the end may never be: the end of the queue pair gives
// them back.
func (w *Wire) turn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.ch.Drain(); err != nil {
		w.fail(err)
	}
	if err := w.cq.Arm(); err != nil {
		w.fail(err)
	}
	for {
		var wcs [32]verbs.WC
		n, err := w.cq.Poll(wcs[:])
		if err != nil {
			w.fail(err)
		}
		for i := range n {
			w.complete(&wcs[i])
		}
		if n == 0 {
			break
		}
	}
	for _, look := range w.begun.take() {
		look(w)
	}
	var e verbs.Event
	for {
		ok, err := w.events.Next(&e)
		if err != nil || !ok {
			break
		}
		if e.Type == verbs.EventDisconnected {
			w.fail(io.EOF)
		}
	}
	return w.err == nil || len(w.sending) > 0
}

// fail ends the connection: what is posted is flushed.
func (w *Wire) fail(err error) {
	if w.err == nil {
		w.err = err
		_ = w.id.Disconnect() // the flush shows it
	}
	w.cond.Broadcast()
}

// complete takes a completion.
func (w *Wire) complete(wc *verbs.WC) {
	if mr, ok := w.sending[wc.ID]; ok {
		delete(w.sending, wc.ID)
		w.release(mr)
		if wc.Status != verbs.StatusOK {
			w.fail(w.endOf(wc.Status))
		}
		return
	}
	b := w.posted[wc.ID]
	delete(w.posted, wc.ID)
	w.release(b.mr)
	if wc.Status != verbs.StatusOK {
		w.fail(w.endOf(wc.Status))
		return
	}
	inv := uint32(0)
	if wc.Flags&verbs.WCWithInv != 0 {
		inv = wc.Inv
	}
	w.Counts.Sends++
	if w.full {
		w.receive(fullBuffer)
	}
	if err := w.arrived(b.mem[:wc.Len], inv); err != nil {
		w.fail(err)
	}
	w.cond.Broadcast()
}

// endOf is how a failed work request shows: what the target has ended is the end
// of the stream.
func (w *Wire) endOf(s verbs.Status) error {
	if s == verbs.StatusFlushed {
		return io.EOF
	}
	return fmt.Errorf("RDMA: %v: %w", s, io.EOF)
}

// register makes memory known to the device.
func (w *Wire) register(b []byte, access verbs.Access) verbs.MR {
	mr, err := w.pd.Register(b, access)
	if err != nil {
		w.fail(err)
		return nil
	}
	return mr
}

func (w *Wire) release(mr verbs.MR) {
	if mr == nil {
		return
	}
	if err := mr.Deregister(); err != nil {
		w.fail(err)
	}
}

// receive posts a receive of n bytes.
func (w *Wire) receive(n int) {
	b := buffer{mem: make([]byte, n)}
	if b.mr = w.register(b.mem, verbs.AccessLocalWrite); b.mr == nil {
		return
	}
	w.lastID++
	w.posted[w.lastID] = b
	sge := verbs.SGE{Addr: verbs.Addr(b.mem), Len: uint32(n), LKey: b.mr.LKey()}
	if _, err := w.qp.PostRecv([]uint64{w.lastID}, []verbs.SGE{sge}); err != nil {
		w.fail(err)
	}
}

// send sends a message.
func (w *Wire) send(m []byte) {
	mr := w.register(m, 0)
	if mr == nil {
		return
	}
	w.lastID++
	w.sending[w.lastID] = mr
	wr := verbs.WR{ID: w.lastID, Op: verbs.OpSend, Flags: verbs.FlagSignaled, NSGE: 1}
	if _, err := w.qp.PostSend([]verbs.WR{wr}, []verbs.SGE{{Addr: verbs.Addr(m), Len: uint32(len(m)), LKey: mr.LKey()}}); err != nil {
		w.fail(err)
	}
}

// Read implements io.Reader.
func (w *Wire) Read(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.in) == 0 {
		switch {
		case w.err != nil:
			return 0, w.err
		case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		w.cond.Wait()
	}
	n := copy(b, w.in)
	w.in = w.in[n:]
	return n, nil
}

// SetReadDeadline bounds reads.
func (w *Wire) SetReadDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), w.cond.Broadcast)
	}
	return nil
}

// Write implements io.Writer.
func (w *Wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = append(w.out, b...)
	for w.err == nil && len(w.out) >= bhsLength {
		n := bhsLength + int(w.out[4])*4 + (dataLength(w.out)+3)&^3
		if len(w.out) < n {
			break
		}
		w.take(w.out[:n:n])
		w.out = append([]byte(nil), w.out[n:]...)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(b), nil
}

// Close disconnects and frees all, once what was sent is flushed.
func (w *Wire) Close() error {
	w.mu.Lock()
	first := w.stop >= 0
	if first {
		w.fail(io.ErrClosedPipe)
		_, _ = unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	w.mu.Unlock()
	<-w.ended
	if !first {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		w.release(t.mr)
	}
	w.tasks = nil
	return w.destroy()
}

// destroy frees all.
func (w *Wire) destroy() error {
	errs := []error{w.qp.Destroy(), w.id.Destroy()}
	for _, b := range w.posted {
		w.release(b.mr)
	}
	w.posted = nil
	_, err := w.ch.Drain()
	errs = append(errs, err, w.cq.Destroy(), w.ch.Destroy(), w.pd.Dealloc(), w.events.Close(), unix.Close(w.stop), unix.Close(w.begun.fd))
	w.stop = -1
	return errors.Join(errs...)
}

func dataLength(bhs []byte) int { return int(bhs[5])<<16 | int(bhs[6])<<8 | int(bhs[7]) }

func u32(bhs []byte, at int) uint32 { return binary.BigEndian.Uint32(bhs[at:]) }

func setU32(bhs []byte, at int, v uint32) { binary.BigEndian.PutUint32(bhs[at:], v) }
