package rdma

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/bulk/keyed"
	"lunar/internal/eventually"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = netip.MustParseAddrPort("10.0.0.2:3262")

// hosts are two on a network.
type hosts struct {
	*testing.T
	fabric   *fake.Fabric
	from, to *fake.Host
	key      keyed.Key
	listener *Listener
}

func newHosts(t *testing.T, o fake.Options) *hosts {
	t.Helper()
	f := fake.New(t, o)
	h := &hosts{
		T: t, fabric: f, key: keyed.NewKey(),
		from: f.Host("from", false, fake.DeviceOptions{Name: "rxe0", Addr: netip.MustParseAddr("10.0.0.1")}),
		to:   f.Host("to", false, fake.DeviceOptions{Name: "rxe1", Addr: at.Addr()}),
	}
	var err error
	if h.listener, err = Listen(h.to, at, h.key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.listener.Close() })
	return h
}

const testSession = 7

// pair is a link whose data channels are open, and pools of both sides with a credit for the
// first block of the receiver's.
type pair struct {
	*hosts
	source   *Source
	sink     *Sink
	from, to *pipeline.Pool
	credit   rftp.Credit
}

func newPair(t *testing.T, o fake.Options) *pair {
	t.Helper()
	p := &pair{hosts: newHosts(t, o)}
	p.source = p.dial(p.key)
	var err error
	if p.sink, err = p.listener.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.from, p.to = p.pool(), p.pool()
	base, key, err := p.sink.Expose(testSession, 2, p.to, 0, 4096, func(addr uint64) *pipeline.Block {
		for _, b := range p.to.Blocks {
			if verbs.Addr(b.Memory) == addr {
				return b
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.credit = rftp.Credit{Addr: base, RKey: key, Length: 4096}
	if err := p.source.Open(testSession, 2, p.from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func (p *pair) close() {
	_ = p.source.Close()
	_ = p.sink.Close()
	p.source.Wait()
	p.sink.Wait()
}

func (p *pair) pool() *pipeline.Pool {
	p.Helper()
	pool, err := pipeline.NewPool(4, 4096)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = pool.Close() })
	return pool
}

func (h *hosts) dial(key keyed.Key) *Source {
	h.Helper()
	s, err := Dial(h.Context(), h.from, at, key)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// write sends a block and returns how that ended.
func (p *pair) write(c rftp.Credit, data string) error {
	p.Helper()
	b := p.from.Blocks[0]
	b.Session = testSession
	done := make(chan error, 1)
	p.source.Write(b, b.Memory[:copy(b.Memory, data)], c, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(eventually.Patience):
		p.Fatal("nobody tells how it has ended")
		return nil
	}
}

// TestWrite: a block is where its credit says when the sink hears of it.
func TestWrite(t *testing.T) {
	p := newPair(t, fake.Options{})
	for _, data := range []string{"one", "the other"} { // over one channel, and over the other
		if err := p.write(p.credit, data); err != nil {
			t.Fatal(err)
		}
		m, err := p.sink.Receive()
		if err != nil || m.Type != rftp.BlockDone || m.Addr != p.credit.Addr || !bytes.HasPrefix(p.to.Blocks[0].Memory, []byte(data)) {
			t.Fatalf("found %+v, %v", m, err)
		}
	}
}

// TestHostileWrites: who writes where he has no credit for it loses the session, and nothing
// else is written to.
func TestHostileWrites(t *testing.T) {
	for _, c := range []struct {
		name   string
		credit func(rftp.Credit) rftp.Credit
		sender string // what it hears of it
		sink   string
	}{
		{"behind the pool", func(c rftp.Credit) rftp.Credit { c.Addr += 4 * 4096; return c }, "remote access error", ""},
		{"with another key", func(c rftp.Credit) rftp.Credit { c.RKey++; return c }, "remote access error", ""},
		{"where no credit is out", func(c rftp.Credit) rftp.Credit { c.Addr += 8; return c }, "", "where no credit was given"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, fake.Options{})
			err := p.write(c.credit(p.credit), "evil")
			if c.sender == "" {
				_, err = p.sink.Receive()
			}
			if err == nil || !strings.Contains(err.Error(), c.sender+c.sink) {
				t.Errorf("found %v, expected %q", err, c.sender+c.sink)
			}
		})
	}
}

// TestStrangeChannels: a data channel comes in only with a token of the control channel, and
// once.
func TestStrangeChannels(t *testing.T) {
	p := newPair(t, fake.Options{})
	real, err := p.source.Hello(testSession, 0)
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Clone(real)
	wrong[len(wrong)-1] ^= 1
	for name, hello := range map[string][]byte{"a second time": real, "wrong": wrong, "none": nil, "of no channel": append([]byte{0, 0, 0, testSession, 0, 9}, real[6:]...)} {
		o := &outlet{results: p.source.ended, under: map[uint64]func(error){}}
		err := p.source.connect(t.Context(), o, shape{slots: 1, slot: blockDone, entries: 4, inline: blockDone}, append([]byte{dataChannel}, hello...)...)
		if err == nil || !strings.Contains(err.Error(), "rejected") {
			t.Errorf("%s: found %v, expected that it is rejected", name, err)
		}
	}
	if err := p.source.connect(t.Context(), newStream(), streamShape, 'X'); err == nil {
		t.Error("a channel of no kind came in")
	}
}

// TestCutCable: who sends, and who waits, notices that the other one is gone.
func TestCutCable(t *testing.T) {
	p := newPair(t, fake.Options{})
	p.hosts.from.Device(0).Cut()
	if err := p.write(p.credit, "lost"); err == nil || !strings.Contains(err.Error(), "transport retries exceeded") {
		t.Errorf("the sender: found %v", err)
	}
	if err := p.sink.control.engine.do(func() error { p.sink.control.engine.beat(); return nil }); err != nil {
		t.Fatal(err)
	}
	if m, err := p.sink.Receive(); err == nil {
		t.Errorf("the receiver: found %+v, expected that it notices", m)
	}
}

// TestRemovedDevice: the session ends when a device goes.
func TestRemovedDevice(t *testing.T) {
	p := newPair(t, fake.Options{})
	p.hosts.to.Device(0).Remove()
	if m, err := p.sink.Receive(); err == nil {
		t.Errorf("found %+v", m)
	}
}

// streams are both ends of one, without TLS.
func streams(t *testing.T) (h *hosts, client, server *stream) {
	t.Helper()
	h = newHosts(t, fake.Options{})
	e, err := start(h.from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.finish()
		<-e.ended
	})
	client = newStream()
	if err := (&Source{engine: e, to: at}).connect(t.Context(), client, streamShape, controlChannel); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	eventually.Holds(t, "the listener has the stream", func() bool {
		_ = h.listener.engine.do(func() error {
			for _, w := range h.listener.engine.wires {
				server, _ = w.user.(*stream)
			}
			return nil
		})
		return server != nil
	})
	return h, client, server
}

// TestStream: bytes come as they were written, however many, both ways at a time; more than
// the peer reads waits, as long as a deadline says.
func TestStream(t *testing.T) {
	h := newHosts(t, fake.Options{})
	c := h.dial(h.key)
	s, err := h.listener.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const messages = 300
	sums := make([][rftp.SumSize]byte, rftp.MaxSums)
	received := make(chan error, 2)
	send := func(to interface{ Send(*rftp.Message) error }) {
		for i := range messages {
			if err := to.Send(&rftp.Message{Type: rftp.Digests, Sequence: uint64(i), Sums: sums}); err != nil {
				received <- err
				return
			}
		}
	}
	receive := func(from interface{ Receive() (rftp.Message, error) }) {
		for i := range messages {
			if m, err := from.Receive(); err != nil || m.Sequence != uint64(i) || len(m.Sums) != len(sums) {
				received <- errors.Join(err, errors.New("found another message"))
				return
			}
		}
		received <- nil
	}
	go send(c)
	go send(s)
	go receive(c)
	go receive(s)
	for range 2 {
		if err := <-received; err != nil {
			t.Error(err)
		}
	}
	_ = c.Close()
	c.Wait()
	if _, err := s.Receive(); err == nil {
		t.Error("the end of the peer is not noticed")
	}
}

// TestStreamWaits: a peer that does not read is written to as far as it has room, and a
// deadline ends the waiting.
func TestStreamWaits(t *testing.T) {
	_, client, _ := streams(t)
	if err := client.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, 4*streamSlots*streamSlot)) // TLS reads some, and finds no record
		wrote <- err
	}()
	select {
	case err := <-wrote: // the peer has closed it, because that is no TLS
		if err == nil {
			t.Error("more was written than there is room for")
		}
	case <-time.After(eventually.Patience):
		t.Error("it waits for ever")
	}
	if err := client.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a deadline passes", func() bool {
		_, err := client.Read(make([]byte, 1<<20))
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// TestStreamFlood: who sends more than was allowed, or gives more credits than there can be,
// loses the connection.
func TestStreamFlood(t *testing.T) {
	for name, credits := range map[string]uint16{"more messages": 0, "more credits": 1000} {
		t.Run(name, func(t *testing.T) {
			h, client, server := streams(t)
			client.mu.Lock()
			client.credits = 1 << 20 // which the peer has not given
			client.owed = int(credits)
			client.mu.Unlock()
			for range 4 * streamSlots {
				client.beat()
			}
			select {
			case <-server.wire.over:
			case <-time.After(eventually.Patience):
				t.Error("the peer keeps the connection")
			}
			h.fabric.Breaches() // such a peer may find no receive
		})
	}
}

// TestRequestBesideClose: who asks to come in while the listener closes is refused, and not
// awaited until he has proved nothing for long enough.
func TestRequestBesideClose(t *testing.T) {
	h := newHosts(t, fake.Options{})
	from, err := start(h.from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		from.finish()
		<-from.ended
	})
	refused := make(chan error, 1)
	e := h.listener.engine
	if err := e.do(func() error {
		go func() {
			refused <- (&Source{engine: from, to: at}).connect(t.Context(), newStream(), streamShape, controlChannel)
		}()
		eventually.Holds(t, "a request is there", func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(e.events.FD()), Events: unix.POLLIN}}, 0)
			return n == 1 && err == nil
		})
		e.shut()
		e.takeEvents()
		if len(e.wires) != 0 {
			return errors.New("it has come in")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := <-refused; err == nil {
		t.Error("it is not refused")
	}
}

// TestStreamThatCannotSend: who waits for a message hears that nothing can be sent any more.
func TestStreamThatCannotSend(t *testing.T) {
	memory, err := arena.Open(arena.Options{Bytes: 2 * streamSlots * streamSlot, Node: -1, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() })
	s, waits := newStream(), make(chan struct{}, 1)
	s.changed = sync.NewCond(told{&s.mu, waits})
	s.attach(&wire{shape: streamShape, memory: memory, region: key{}}) // without a queue pair
	read := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		read <- err
	}()
	<-waits
	s.beat()
	select {
	case err := <-read:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("found %v", err)
		}
	case <-time.After(eventually.Patience):
		t.Error("it waits for ever")
		s.fail(io.EOF)
	}
}

// told is a mutex that tells who waits for a condition under it.
type told struct {
	*sync.Mutex
	waits chan struct{}
}

// Unlock implements sync.Locker, for sync.Cond alone.
func (l told) Unlock() {
	l.Mutex.Unlock()
	l.waits <- struct{}{}
}

// key is a region that has no memory.
type key struct{ verbs.MR }

// LKey implements verbs.MR.
func (key) LKey() uint32 { return 0 }

// TestStrangersKey: who has another key gets no control channel.
func TestStrangersKey(t *testing.T) {
	h := newHosts(t, fake.Options{})
	s, err := Dial(t.Context(), h.from, at, keyed.NewKey())
	if err == nil { // TLS 1.3: the server's refusal comes later
		if _, err = s.Receive(); err == nil {
			t.Error("a stranger was let in")
		}
		_ = s.Close()
		s.Wait()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.listener.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v", err)
	}
}

// TestSilentStrangers: however many streams say nothing, a sender comes in.
func TestSilentStrangers(t *testing.T) {
	h := newHosts(t, fake.Options{})
	from, err := start(h.fabric.Host("silent", false, fake.DeviceOptions{Name: "rxe2", Addr: netip.MustParseAddr("10.0.0.3")}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		from.order(func() {
			for _, w := range from.wires {
				w.end(net.ErrClosed)
			}
			from.shut()
		})
		<-from.ended
	})
	for range 2 * mostGreetings {
		if err := (&Source{engine: from, to: at}).connect(t.Context(), newStream(), streamShape, controlChannel); err != nil {
			t.Fatal(err)
		}
	}
	s := h.dial(h.key)
	if _, err := h.listener.Accept(t.Context()); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	s.Wait()
}

// TestNobodyListens: the error names the address.
func TestNobodyListens(t *testing.T) {
	h := newHosts(t, fake.Options{})
	_, err := Dial(t.Context(), h.from, netip.AddrPortFrom(at.Addr(), 1), h.key)
	if err == nil || !strings.Contains(err.Error(), "rdma://10.0.0.2:1") {
		t.Errorf("found %v", err)
	}
}

// TestRefusedCalls: whatever a device refuses, there is an error, and nothing is left behind.
func TestRefusedCalls(t *testing.T) {
	for _, call := range []string{"rdma_create_event_channel", "rdma_listen", "rdma_resolve_addr", "ibv_alloc_pd", "ibv_create_comp_channel", "ibv_create_cq", "ibv_reg_mr", "rdma_create_qp", "rdma_connect", "rdma_accept"} {
		t.Run(call, func(t *testing.T) {
			refused := false
			f := fake.New(t, fake.Options{Refuse: func(c string) error {
				if refused || c != call {
					return nil
				}
				refused = true
				return io.ErrShortBuffer
			}})
			from := f.Host("from", false, fake.DeviceOptions{Name: "rxe0", Addr: netip.MustParseAddr("10.0.0.1")})
			to := f.Host("to", false, fake.DeviceOptions{Name: "rxe1", Addr: at.Addr()})
			key := keyed.NewKey()
			l, err := Listen(to, at, key)
			if err == nil {
				defer l.Close()
				var s *Source
				if s, err = Dial(t.Context(), from, at, key); err == nil {
					_ = s.Close()
					s.Wait()
				}
			}
			if err == nil {
				t.Error("found no error")
			}
		})
	}
}

var _ net.Conn = (*stream)(nil)
