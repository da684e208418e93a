package tcp

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
)

// nobody is a Receiver of a connection whose peer says nothing.
type nobody struct {
	closed   chan error
	other    *evloop.Loop // of node 1
	taken    func(*pdu.BHS)
	promised bool
}

func (*nobody) Place(*pdu.BHS, int) []byte { return nil }
func (*nobody) Foresee([]byte) int         { return 0 }
func (*nobody) Fetched(uint32, uint32)     {}
func (*nobody) Stamp(*pdu.BHS)             {}
func (*nobody) Spent(*pdu.BHS) bool        { return false }
func (*nobody) Restamp(*pdu.BHS)           {}
func (*nobody) Heard()                     {}
func (n *nobody) Prior() bool              { return n.taken != nil }
func (n *nobody) Promised() bool           { return n.promised }
func (*nobody) Drained()                   {}

func (n *nobody) Received(bhs *pdu.BHS, _, _ []byte, _ bool) {
	if n.taken != nil {
		n.taken(bhs)
	}
}

func (n *nobody) Sender(node int) *evloop.Loop {
	if node == 1 {
		return n.other
	}
	return nil
}
func (n *nobody) Closed(why error) { n.closed <- why }
func (*nobody) Contain()           {}

// library lends and counts what is out.
type library struct{ out, returned int }

type book struct {
	buf.Loan
	*library
	text []byte
}

// Returned implements buf.Lender: the text may change now.
func (b *book) Returned(*buf.Loan) {
	b.out--
	b.returned++
	clear(b.text)
}

func (l *library) lend(pool *buf.Pool, text []byte) *buf.Ref {
	l.out++
	b := &book{library: l, text: text}
	return pool.Lend(&b.Loan, text, b)
}

// shelf is a mover on its loop with somebody at the other end of the socket.
type shelf struct {
	*library
	loop  *evloop.Loop
	mover *mover
	r     *nobody
	peer  *os.File
	want  []byte
}

func newLoop(t *testing.T, name string) *evloop.Loop {
	t.Helper()
	loop, err := evloop.New(evloop.Config{Name: name, CPU: -1, Node: -1, Buffers: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(loop.Stop)
	return loop
}

const bookSize = 64 << 10

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return newShelves(t, 1)[0]
}

// newShelves are so many connections of one loop.
func newShelves(t *testing.T, n int) []*shelf {
	t.Helper()
	loop := newLoop(t, "loans")
	transport, err := Open(Config{Loops: []*evloop.Loop{loop}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	shelves := make([]*shelf, n)
	for i := range shelves {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &shelf{library: &library{}, loop: loop, peer: os.NewFile(uintptr(fds[1]), "peer")}
		s.mover = newMover(transport.scratches, fds[0], &login.ConnectionParams{InitiatorMaxRecvDataSegmentLength: bookSize, TargetMaxRecvDataSegmentLength: bookSize})
		s.r = &nobody{closed: make(chan error, 1)}
		s.on(func() {
			if err := s.mover.Attach(s.r, s.loop); err != nil {
				t.Error(err)
			}
		})
		shelves[i] = s
	}
	return shelves
}

func (s *shelf) on(f func()) {
	done := make(chan struct{})
	s.loop.Post(evloop.Func(func() { defer close(done); f() }))
	<-done
}

// put sends a book; it belongs to the loop.
func (s *shelf) put(number, node int, charge *buf.Account) {
	text := bytes.Repeat([]byte{byte(number)}, bookSize)
	ref := s.lend(s.loop.Pool(), text)
	if node >= 0 {
		ref.SendFrom(node)
	}
	ref.Charge(charge)
	p := (*pdu.DataIn)(&pdu.BHS{}).Init()
	p.BHS().SetDataSegmentLength(bookSize)
	s.want = append(append(s.want, p.BHS()[:]...), text...)
	s.mover.PutData(p, text, ref)
}

// read compares what the peer gets with what was sent.
func (s *shelf) read(t *testing.T) {
	t.Helper()
	got := make([]byte, len(s.want))
	if _, err := io.ReadFull(s.peer, got); err != nil || !bytes.Equal(got, s.want) {
		t.Errorf("error %v, or the peer got other data than were lent", err)
	}
}

// TestLoansOfASilentPeer: what was lent to a connection whose peer does not read
// is given back soon, and the peer gets the data as they were.
func TestLoansOfASilentPeer(t *testing.T) {
	const books = 16
	s, charged := newShelf(t), buf.Account{}
	s.on(func() {
		for i := range books {
			s.put(i, -1, &charged)
		}
	})
	eventually.Finds(t, "loans that are out", 0, func() (out int) {
		s.on(func() { out = s.out })
		return out
	})
	s.on(func() {
		if charged.Used == 0 || s.loop.Pool().InUse() == 0 {
			t.Errorf("%d bytes charged, %d buffers in use: expected the copies", charged.Used, s.loop.Pool().InUse())
		}
	})
	s.read(t)
	s.peer.Close()
	s.on(func() { s.mover.Close(io.EOF, false) })
	<-s.r.closed
	s.on(func() {
		if charged.Used != 0 || s.loop.Pool().InUse() != 0 || s.returned != books {
			t.Errorf("%d bytes charged, %d buffers in use, %d loans given back: expected 0, 0, %d", charged.Used, s.loop.Pool().InUse(), s.returned, books)
		}
	})
}

// TestSendFromAnotherNode: some of the data are sent by another thread, and all
// arrive in order.
func TestSendFromAnotherNode(t *testing.T) {
	s, charged := newShelf(t), buf.Account{}
	s.r.other = newLoop(t, "other")
	got := make([]byte, 60*(pdu.BHSLength+bookSize))
	read := make(chan error)
	go func() {
		_, err := io.ReadFull(s.peer, got)
		read <- err
	}()
	s.on(func() { s.loop.Arm(&s.mover.tx.copying, time.Hour) }) // what is copied is not handed to the other thread
	for i := range 60 {
		s.on(func() { s.put(i, i/3%3-1, &charged) })
	}
	if err := <-read; err != nil || !bytes.Equal(got, s.want) {
		t.Errorf("error %v, or the peer got other data than were lent", err)
	}
	s.peer.Close()
	s.on(func() { s.mover.Close(io.EOF, false) })
	<-s.r.closed
	s.on(func() {
		if n := s.mover.tx.remote.sends; n < 60/9 || charged.Used != 0 {
			t.Errorf("%d sends on the other thread, %d bytes charged: expected at least %d, and 0", n, charged.Used, 60/9)
		}
	})
}

// TestWritableBeforeSentRemotely: the socket was full for the other thread, and the
// peer makes room before that is known at home. The event does not come again.
func TestWritableBeforeSentRemotely(t *testing.T) {
	s, charged := newShelf(t), buf.Account{}
	s.r.other = newLoop(t, "other")
	filled, hold := make(chan struct{}), make(chan struct{})
	s.on(func() {
		s.loop.Arm(&s.mover.tx.copying, time.Hour) // what is copied is not handed to the other thread
		for i := range 60 {
			s.put(i, 1, &charged)
		}
	})
	eventually.Holds(t, "the socket is full", func() (blocked bool) {
		s.on(func() { blocked = s.mover.tx.blocked })
		return blocked
	})
	s.r.other.Post(evloop.Func(func() { <-hold }))
	s.on(func() { // as if the peer had made room for a moment
		s.mover.writable()
		close(filled)
	})
	<-filled
	s.on(func() {
		if !s.mover.tx.remote.busy {
			t.Error("nothing was handed to the other thread")
		}
		s.mover.writable() // comes before the result
	})
	close(hold)
	s.on(func() {})
	s.read(t)
	s.peer.Close()
	s.on(func() { s.mover.Close(io.EOF, false) })
	<-s.r.closed
}

// sendingRemotely puts a book that another thread is sending until sent is called.
func (s *shelf) sendingRemotely(t *testing.T, charge *buf.Account) (sent func()) {
	t.Helper()
	s.r.other = newLoop(t, "other")
	hold := make(chan struct{})
	s.r.other.Post(evloop.Func(func() { <-hold }))
	s.on(func() { s.put(1, 1, charge) })
	s.on(func() {
		if !s.mover.tx.remote.busy {
			t.Error("nothing was handed to the other thread")
		}
	})
	return func() { close(hold) }
}

// TestQueuedWhileSentRemotely: what is queued while another thread sends follows, and
// is not taken for sent.
func TestQueuedWhileSentRemotely(t *testing.T) {
	s, charged := newShelf(t), buf.Account{}
	sent := s.sendingRemotely(t, &charged)
	s.on(func() {
		p := (*pdu.SCSIResponse)(&pdu.BHS{}).Init()
		s.want = append(s.want, p.BHS()[:]...)
		s.mover.SendControl(p.BHS(), nil, nil)
	})
	sent()
	_ = s.peer.SetReadDeadline(time.Now().Add(10 * time.Second))
	s.read(t)
	s.peer.Close()
	s.on(func() { s.mover.Close(io.EOF, false) })
	<-s.r.closed
}

// TestCloseWhileSentRemotely: the socket stays open as long as another thread may
// send to it.
func TestCloseWhileSentRemotely(t *testing.T) {
	s, charged := newShelf(t), buf.Account{}
	sent := s.sendingRemotely(t, &charged)
	s.on(func() { s.mover.Close(io.EOF, false) })
	select {
	case <-s.r.closed:
		t.Error("closed while the other thread was sending")
	case <-time.After(20 * time.Millisecond):
	}
	sent()
	<-s.r.closed
	s.read(t)
	s.on(func() {
		if s.out != 0 || charged.Used != 0 {
			t.Errorf("%d loans and %d bytes charged are left", s.out, charged.Used)
		}
	})
}
