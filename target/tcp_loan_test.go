package target

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
)

// nobody is a Receiver of a connection whose peer says nothing.
type nobody struct {
	room   *Room
	closed chan error
}

func (*nobody) Place(*pdu.BHS, int) []byte              { return nil }
func (*nobody) Received(*pdu.BHS, []byte, []byte, bool) {}
func (*nobody) Stamp(*pdu.BHS)                          {}
func (*nobody) Heard()                                  {}
func (n *nobody) Room() *Room                           { return n.room }
func (*nobody) Drained()                                {}
func (n *nobody) Closed(why error)                      { n.closed <- why }
func (*nobody) Contain()                                {}

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

// TestLoansOfASilentPeer: what was lent to a connection whose peer does not read
// is given back soon, and the peer gets the data as they were.
func TestLoansOfASilentPeer(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := evloop.New(evloop.Config{Name: "loans", CPU: -1, Node: -1, Buffers: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	defer loop.Stop()
	on := func(f func()) {
		done := make(chan struct{})
		loop.Post(evloop.Func(func() { defer close(done); f() }))
		<-done
	}
	const pieces, size = 16, 64 << 10
	m := newSocketMover(fds[0], &login.ConnectionParams{InitiatorMaxRecvDataSegmentLength: size, TargetMaxRecvDataSegmentLength: size})
	r := &nobody{room: newRoom(), closed: make(chan error, 1)}
	l, charged := &library{}, 0
	var want []byte
	on(func() {
		if err := m.Attach(r, loop); err != nil {
			t.Error(err)
		}
		for i := range pieces {
			text := bytes.Repeat([]byte{byte(i + 1)}, size)
			ref := l.lend(loop.Pool(), text)
			ref.Charge(&charged)
			p := (*pdu.DataIn)(&pdu.BHS{}).Init()
			p.BHS().SetDataSegmentLength(size)
			want = append(append(want, p.BHS()[:]...), text...)
			m.PutData(p, text, ref)
		}
	})
	for out := -1; out != 0; time.Sleep(time.Millisecond) {
		on(func() { out = l.out })
	}
	on(func() {
		if charged == 0 || loop.Pool().InUse() == 0 {
			t.Errorf("%d bytes charged, %d buffers in use: expected the copies", charged, loop.Pool().InUse())
		}
	})
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	peer := os.NewFile(uintptr(fds[1]), "peer")
	got := make([]byte, len(want))
	if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("error %v, or the peer got other data than were lent", err)
	}
	peer.Close()
	on(func() { m.Close(io.EOF, false) })
	<-r.closed
	on(func() {
		if charged != 0 || loop.Pool().InUse() != 0 || l.returned != pieces {
			t.Errorf("%d bytes charged, %d buffers in use, %d loans given back: expected 0, 0, %d", charged, loop.Pool().InUse(), l.returned, pieces)
		}
	})
}
