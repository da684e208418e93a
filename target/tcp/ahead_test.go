package tcp

import (
	"testing"

	"golang.org/x/sys/unix"

	"lunar/scheduler"
	"lunar/target"
)

// TestGovernorGrantsAhead: while looks come late more leaves than the window, and the kernel paces
// it; neither if they come in time again, or when nothing governs any more.
func TestGovernorGrantsAhead(t *testing.T) {
	m, loop, _, on := governed(t)
	kernel := func() uint64 {
		pace, err := unix.GetsockoptUint64(m.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
		if err != nil {
			t.Error(err)
		}
		return pace
	}
	look := func(late int64) {
		m.gov.idle, m.gov.due = false, loop.Now()-late
		m.gov.look()
	}
	on(func() {
		_ = m.SetClass(target.NetworkClass{Class: scheduler.High, Network: &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}})
		g := m.gov
		look(0)
		if g.granted != 0 || kernel() != unpaced {
			t.Errorf("a look in time grants %d bytes ahead, paced at %d", g.granted, kernel())
		}
		g.room()
		look(2 * g.rtt)
		if want := 2 * g.window(); g.granted != want || kernel() != g.pace || kernel() == unpaced {
			t.Errorf("a look two round trips late grants %d bytes ahead, paced at %d, expected %d, paced", g.granted, kernel(), want)
		}
		if room := g.room(); room != g.window()+g.granted-g.underway() || g.bound {
			t.Errorf("%d bytes may leave, bound %v, expected window and what is granted", room, g.bound)
		}
		g.queued += int32(g.window())
		if room := g.room(); room < g.granted/2 || !g.bound {
			t.Errorf("%d bytes may leave, bound %v, with a window under way, expected what is granted and that the window bounds", room, g.bound)
		}
		for range 1000 {
			look(0)
		}
		if g.granted != 0 || kernel() != unpaced {
			t.Errorf("looks in time grant %d bytes ahead, paced at %d", g.granted, kernel())
		}
		look(2 * g.rtt)
		_ = m.SetClass(target.NetworkClass{})
		if kernel() != unpaced {
			t.Errorf("ungoverned the connection is paced at %d", kernel())
		}
	})
}
