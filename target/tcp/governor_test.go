package tcp

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/bottleneck"
	"lunar/target/login"
	"lunar/target/pdu"
)

// segment is what peers say that they take in one packet, in bytes: as over Ethernet.
const segment = 1448

// governed is a mover over TCP on this machine, and its peer.
func governed(t *testing.T) (*mover, *evloop.Loop, net.Conn, func(func())) {
	t.Helper()
	loop := newLoop(t, "governed")
	transport, err := Open(Config{Loops: []*evloop.Loop{loop}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, segment) })
	}}
	peer, err := dialer.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := takeSocket(conn.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	m := newMover(transport.scratches, fd, &login.ConnectionParams{InitiatorMaxRecvDataSegmentLength: bookSize, TargetMaxRecvDataSegmentLength: bookSize})
	on := func(f func()) {
		done := make(chan struct{})
		loop.Post(evloop.Func(func() { defer close(done); f() }))
		<-done
	}
	r := &nobody{closed: make(chan error, 1)}
	on(func() {
		if err := m.Attach(r, loop); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { on(func() { m.Close(syscall.ECANCELED, false) }) })
	return m, loop, peer, on
}

// put queues n bytes of data; it belongs to the loop.
func (m *mover) put(n int) {
	p := (*pdu.DataIn)(&pdu.BHS{}).Init()
	p.BHS().SetDataSegmentLength(n)
	m.PutData(p, bytes.Repeat([]byte{'x'}, n), nil)
}

// TestGovernorHolds: no more leaves than the window, the rest stays in the queue; what is
// acknowledged makes room, until all has come; without a class all is as before.
func TestGovernorHolds(t *testing.T) {
	m, _, peer, on := governed(t)
	on(func() {
		m.put(4096)
		if m.gov != nil || m.tx.held {
			t.Error("a connection without a class is governed")
		}
	})
	read := func(n int) {
		t.Helper()
		if _, err := io.ReadFull(peer, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	read(pdu.BHSLength + 4096)
	network := &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}
	const pieces = 64
	on(func() {
		if err := m.SetClass(target.NetworkClass{Class: scheduler.Low, Network: network}); err != nil {
			t.Error(err)
		}
		m.gov.flow.Use(2)
		for range pieces {
			m.put(bookSize)
		}
		if err := m.flush(); err != nil {
			t.Error(err)
		}
		if most := 2 * m.gov.packet; !m.tx.held || m.gov.underway() > most || !m.tx.pending() {
			t.Errorf("%d bytes are under way, held %v, expected at most %d of two packets and the rest queued", m.gov.underway(), m.tx.held, most)
		}
	})
	read(pieces * (pdu.BHSLength + bookSize))
	eventually.Holds(t, "the connection is idle", func() (idle bool) {
		on(func() { idle = m.gov.idle && m.gov.underway() == 0 && !m.tx.held })
		return idle
	})
	on(func() {
		told := m.Governance()
		if told.Form != target.Delay && told.Form != target.Marks || told.Device != "lo" || told.Rate <= 0 || told.Window <= 0 {
			t.Errorf("it is told as %+v", told)
		}
		_ = m.SetClass(target.NetworkClass{})
		if m.gov != nil || m.scratch.links.Of(netip.MustParseAddr("127.0.0.1"), "", bottleneck.Out, network).Members() != 0 {
			t.Error("the governor is still there, or counted")
		}
	})
}

// TestGovernorDoesNotAllocate: neither does what it does once per round trip.
func TestGovernorDoesNotAllocate(t *testing.T) {
	m, loop, _, on := governed(t)
	on(func() {
		_ = m.SetClass(target.NetworkClass{Class: scheduler.High, Network: &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}})
		g := m.gov
		loops := func() {
			g.room()
			g.began = loop.Now() - g.rtt
			g.first.delivered = g.info.Delivered - 1
			g.look()
		}
		loops()
		if n := testing.AllocsPerRun(100, loops); n > 0 {
			t.Errorf("a round trip allocates %v times", n)
		}
	})
}

// TestGovernorHoldsBack: while the link's members hold back, the window is the least one, and
// then what it was.
func TestGovernorHoldsBack(t *testing.T) {
	m, loop, _, on := governed(t)
	other := bottleneck.Member{Delayed: true}
	const before = int64(time.Second)
	eventually.Holds(t, "the process, with which the loop's clock begins, is older than that", func() (older bool) {
		on(func() { older = loop.Now() > before })
		return older
	})
	on(func() {
		_ = m.SetClass(target.NetworkClass{Class: scheduler.Low, Network: &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}})
		g := m.gov
		g.member.Delayed = true // also where the machine's connections agree on ECN (tcp_ecn)
		was := g.window()
		g.link.Join(&other, loop.Now()-before)
		g.room()
		if g.window() != g.least() || g.least() >= was {
			t.Errorf("the window is %d, expected the least, %d, of one that was %d; held back: %v, members: %d", g.window(), g.least(), was, g.holds, g.link.Members())
		}
	})
	eventually.Holds(t, "the window is back", func() (back bool) {
		on(func() {
			m.gov.room()
			back = m.gov.window() == firstWindow*m.gov.packet
		})
		return back
	})
}
