package tcp

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/pdu"
)

// smallest puts a connection into a class with the smallest window that there is, without
// slow start.
func smallest(t *testing.T, m *mover) {
	if err := m.SetClass(target.NetworkClass{Class: scheduler.Low, Network: &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}}); err != nil {
		t.Error(err)
	}
	for range 64 {
		m.gov.flow.Update(1, 1)
	}
}

// queue puts some PDUs on their way, and returns how many bytes will come.
func (m *mover) queue(t *testing.T, pieces int) int64 {
	for range pieces {
		m.put(bookSize)
	}
	if err := m.flush(); err != nil {
		t.Error(err)
	}
	return int64(pieces * (pdu.BHSLength + bookSize))
}

// lateAcknowledger is a peer that acknowledges late what comes alone, as one does that is about
// to answer.
type lateAcknowledger struct{ net.Conn }

// Read implements io.Reader.
func (l lateAcknowledger) Read(b []byte) (int, error) {
	raw, err := l.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0) })
	if err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// TestGovernorLeavesSmallestWindow: a receiver that acknowledges late what comes alone does not
// hold the smallest window where it is: what it makes of the round trip looks like congestion.
func TestGovernorLeavesSmallestWindow(t *testing.T) {
	m, _, peer, on := governed(t)
	var coming int64
	on(func() {
		smallest(t, m)
		coming = m.queue(t, 2)
	})
	if _, err := io.CopyN(io.Discard, lateAcknowledger{peer}, coming); err != nil {
		t.Fatal(err)
	}
	on(func() {
		if w := m.gov.flow.Window(); w <= leastPackets {
			t.Errorf("the window is %g packets after %d bytes, expected it to have grown", w, coming)
		}
	})
}

// TestGovernorOfStoppedReader: while a peer reads nothing the kernel is asked ever less often,
// and when it reads again everything comes.
func TestGovernorOfStoppedReader(t *testing.T) {
	m, _, peer, on := governed(t)
	var coming int64
	on(func() {
		smallest(t, m)
		coming = m.queue(t, 128)
	})
	eventually.Holds(t, "the peer has stopped", func() (stopped bool) {
		on(func() { stopped = m.gov.pause() >= stillPause && m.tx.pending() })
		return stopped
	})
	if _, err := io.CopyN(io.Discard, peer, coming); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the connection is idle", func() (idle bool) {
		on(func() { idle = m.gov.idle && !m.tx.held && m.gov.pause() < stillPause })
		return idle
	})
}

// TestGovernorKeepsItsWindow: another change of the policy does not begin anew.
func TestGovernorKeepsItsWindow(t *testing.T) {
	m, _, _, on := governed(t)
	on(func() {
		smallest(t, m)
		was := m.gov.flow
		network := &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 2e6}
		_ = m.SetClass(target.NetworkClass{Class: scheduler.Low, Network: network})
		if m.gov.network != network || m.gov.flow != was {
			t.Errorf("the window is %g packets, expected %g", m.gov.flow.Window(), was.Window())
		}
		_ = m.SetClass(target.NetworkClass{Class: scheduler.High, Network: network})
		if m.gov.flow.Window() != firstWindow {
			t.Errorf("in another class the window is %g packets, expected %d", m.gov.flow.Window(), firstWindow)
		}
	})
}

// TestGovernorOutlivesLocalLosses: what a queue of this machine drops before it has left is no
// longer under way for ever. It needs root, for a network of its own.
func TestGovernorOutlivesLocalLosses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and the namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("no network namespace: ", err)
	}
	for _, command := range [][]string{
		{"ip", "link", "set", "lo", "mtu", "1500", "up"},
		{"ip", "link", "set", "lo", "gso_max_segs", "1"},
		{"tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "200mbit", "burst", "3000", "limit", "3000"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", command, err, out)
		}
	}
	m, _, peer, on := governed(t)
	var coming int64
	on(func() {
		_ = m.SetClass(target.NetworkClass{Class: scheduler.High, Network: &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 100e6}})
		coming = m.queue(t, 16)
	})
	if _, err := io.CopyN(io.Discard, peer, coming); err != nil {
		t.Fatal(err)
	}
	on(func() {
		if m.gov.info.Total_retrans+m.gov.info.Delivered == 0 {
			t.Error("nothing was delivered")
		}
	})
	out, err := exec.Command("tc", "-s", "qdisc", "show", "dev", "lo").CombinedOutput()
	t.Logf("%s, %v", out, err)
	eventually.Holds(t, "nothing is under way any more", func() (idle bool) {
		on(func() { idle = m.gov.idle && m.gov.underway() == 0 })
		return idle
	})
}
