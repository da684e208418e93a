package tcp

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/scheduler/qtcp"
	"lunar/target"
	"lunar/target/bottleneck"
	"lunar/target/tcp/kernelqtcp"
)

// governor bounds what is under way to an initiator: no more leaves than the connection's
// QTCP window allows, beside what the kernel allows. Once per round trip it asks the kernel
// what was acknowledged and how much of that was marked. It can only make less be under way
// than the kernel's congestion control would have.
//
// A mover without one does no more than to compare a pointer.
type governor struct {
	mover   *mover
	network *scheduler.Network
	link    *bottleneck.Link
	member  bottleneck.Member
	flow    qtcp.Flow
	timer   evloop.Timer

	sight
	ahead
	total  uint64      // mover.tx.total at the last look
	began  int64       // of the round trip
	first  round       // what the kernel had counted then
	bound  bool        // the window held something back in this round trip
	holds  bool        // the link's members hold back
	entry  *shareEntry // of the kernel, which holds the window; nil: the governor does
	before string      // the congestion control that it took the place of
	joined bool        // it counts in the link's flows
	idle   bool        // nothing was under way at the last look
}

// round is what the kernel counts of a connection.
type round struct {
	acked             uint64 // bytes
	delivered, marked uint32 // packets
}

const (
	// firstWindow is the kernel's initial window, in packets (RFC 6928).
	firstWindow = 10
	// looks is how often it is asked in a round trip while the window holds something back:
	// what is acknowledged makes room that nobody tells of.
	looks = 4
	// longestPause bounds the time between two looks while something is held back, whatever
	// the kernel takes a round trip for; stillPause that of a peer who acknowledges nothing.
	longestPause, stillPause = 5 * time.Millisecond, 100 * time.Millisecond
	// idleTime is how long a connection counts among those that share the link though it
	// has nothing to send.
	idleTime = 200 * time.Millisecond
	// tellTime is how often the kernel is told what a connection should get.
	tellTime = 5 * time.Millisecond
)

// govern puts a connection under a network's classes, or ends that: nil. In the same class
// the window stays what it was.
func (m *mover) govern(c target.NetworkClass) {
	old := m.gov
	if old != nil {
		old.end()
		m.gov = nil
	}
	if c.Network != nil {
		m.gov = newGovernor(m, c)
		if old != nil && old.member.Class == m.gov.member.Class {
			m.gov.flow = old.flow
		}
	}
	if m.tx.held {
		m.tx.held = false
		m.scheduleFlush()
	}
}

func newGovernor(m *mover, c target.NetworkClass) *governor {
	g := &governor{mover: m, network: c.Network, flow: qtcp.NewFlow(firstWindow), idle: true}
	g.member.Class = bottleneck.Class(c.Class)
	g.link = m.scratch.links.Of(localOf(m.fd), "", bottleneck.Out, c.Network)
	g.timer.Fire = g.look
	if c.Network.Governor == scheduler.KernelGovernor {
		var err error
		if g.before, g.entry, err = m.scratch.links.kernel.take(m.fd); err != nil {
			m.scratch.links.fallBack(err)
		} else {
			g.entry.share.DelayUS = uint64(c.Network.Delay / 1000)
		}
	}
	g.ask()
	g.member.Delayed = !g.marks()
	return g
}

// localOf is a socket's own address.
func localOf(fd int) netip.Addr {
	switch name, _ := unix.Getsockname(fd); a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap()
	}
	return netip.Addr{}
}

// end takes the connection from its link.
func (g *governor) end() {
	g.mover.loop.Disarm(&g.timer)
	if g.joined {
		g.joined = false
		g.link.Leave(&g.member)
	}
	g.ahead.end(g.mover.fd)
	if g.entry != nil {
		_ = unix.SetsockoptString(g.mover.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, g.before) // else it ends with the kernel's
	}
}

// room is how many bytes may leave now. Without any, the queue is held until a look finds
// some.
func (g *governor) room() int {
	if g.idle {
		g.wake()
	}
	if g.entry != nil {
		return passSent
	}
	room := g.window() - g.underway()
	g.bound = g.bound || room < g.packet
	if room += g.granted; room >= g.packet {
		return room
	}
	if tx := &g.mover.tx; !tx.held {
		tx.held, tx.since = true, g.mover.loop.Now()
		g.mover.boundLoans()
		g.arm(g.pause())
	}
	return 0
}

// window is how many bytes may be under way.
func (g *governor) window() int {
	if g.holds {
		return g.least()
	}
	return max(g.least(), int(g.flow.Window()*float64(g.packet)))
}

// underway is how many bytes have not been acknowledged, as far as is known. What another
// thread sends may count twice until the next look.
func (g *governor) underway() int {
	return int(g.queued) + int(g.mover.tx.total-g.total)
}

// pause is how long it is until the next look: the longer, the longer nothing has been
// acknowledged.
func (g *governor) pause() time.Duration {
	pause := time.Duration(g.rtt)
	switch {
	case g.mover.tx.held:
		pause = min(max(leastRTT/2, pause/looks), longestPause)
	case g.entry != nil:
		pause = max(tellTime, pause)
	}
	for n := g.still - 2*looks; n > 0 && pause < stillPause; n-- {
		pause *= 2
	}
	return pause
}

// wake begins a round trip of a connection that had nothing to send.
func (g *governor) wake() {
	g.idle, g.still = false, 0
	if !g.joined {
		g.joined = true
		g.link.Join(&g.member, g.mover.loop.Now())
	}
	g.ask()
	g.hold()
	g.begin()
	g.arm(g.pause())
}

// arm plans the next look.
func (g *governor) arm(after time.Duration) {
	g.due = g.mover.loop.Now() + int64(after)
	g.mover.loop.Arm(&g.timer, after)
}

func (g *governor) begin() {
	g.began, g.bound = g.mover.loop.Now(), false
	g.first = round{g.info.Bytes_acked, g.info.Delivered, g.info.Delivered_ce}
}

// ask looks at the connection in the kernel.
func (g *governor) ask() {
	g.sight.ask(g.mover.fd)
	g.total = g.mover.tx.total
	g.member.Trip.Store(g.rtt)
}

// look is the timer.
func (g *governor) look() {
	m := g.mover
	if m.closed {
		return
	}
	defer m.r.Contain()
	if g.idle {
		g.joined = false
		g.link.Leave(&g.member)
		return
	}
	g.Looked(m.loop.Now() - g.due)
	g.ask()
	switch {
	case g.hold():
		g.begin()
	case m.loop.Now()-g.began >= g.rtt:
		g.round()
		g.begin()
	}
	if g.entry == nil {
		g.grant(m.fd, g.window(), g.rtt, g.holds)
	}
	g.release()
	if g.idle = !m.tx.pending() && g.underway() <= 0; g.idle {
		g.member.Measured.Store(0)
		g.arm(idleTime)
		return
	}
	g.arm(g.pause())
}

// hold follows the link, whose members without marks hold back at the same time. It reports
// whether this one does, or did at the last look: such a round trip tells nothing.
func (g *governor) hold() bool {
	if !g.member.Delayed {
		return false
	}
	held := g.holds
	g.holds = g.link.Holds(g.mover.loop.Now())
	if g.entry != nil && g.holds != held {
		g.entry.share.Hold = 0
		if g.holds {
			g.entry.share.Hold = 1
		}
		g.entry.put(g.mover.fd)
	}
	return held || g.holds
}

// release lets the queue go on once the window has room.
func (g *governor) release() {
	m := g.mover
	if m.tx.held && g.window()+g.granted-g.underway() >= g.packet {
		m.tx.held = false
		m.scheduleFlush()
	}
}

// round ends a round trip. A connection that did not fill its window learns nothing of what
// the network bears.
func (g *governor) round() {
	now := g.mover.loop.Now()
	delivered := g.info.Delivered - g.first.delivered
	if delivered == 0 {
		return
	}
	g.flow.Measure(float64(g.info.Bytes_acked-g.first.acked) * 1e9 / float64(now-g.began))
	g.member.Measured.Store(int64(g.flow.Measured()))
	aim, weight := g.link.Aim(g.member.Class)
	if g.entry != nil {
		g.link.Observe(now, g.rtt)
		g.entry.share.Target, g.entry.share.Weight = uint64(aim), uint64(weight*kernelqtcp.Whole)
		g.entry.put(g.mover.fd)
		return
	}
	before := g.flow.Window()
	g.flow.UpdateWeighed(g.congestion(delivered), g.flow.Quality(aim), weight)
	if !g.bound {
		g.flow.Use(before)
	}
	g.member.Slow.Store(g.bound && g.flow.SlowStart())
	g.link.Observe(now, g.rtt)
}

// congestion is the share of what was delivered that was marked, or would have been where
// nothing marks.
func (g *governor) congestion(delivered uint32) float64 {
	if g.marks() {
		return min(1, float64(g.info.Delivered_ce-g.first.marked)/float64(delivered))
	}
	return qtcp.Excess(g.waited(), g.network.Delay)
}

// form is what congestion is seen by.
func (g *governor) form() string {
	if g.marks() {
		return target.Marks
	}
	return target.Delay
}

// tell describes how the connection is governed.
func (g *governor) tell(to *target.Governance) {
	share := g.link.Target(g.member.Class)
	to.Form, to.Device = g.form(), g.link.Name()
	if g.entry != nil {
		to.Window, to.Quality = int64(g.info.Snd_cwnd)*int64(g.packet), g.flow.Quality(share)
		to.Rate, to.Target, to.Estimate = int64(g.flow.Measured()), int64(share), int64(g.link.Estimate())
		return
	}
	to.Window = int64(g.window())
	to.Alpha, to.Quality = g.flow.Alpha(), g.flow.Quality(share)
	to.Rate, to.Target, to.Estimate = int64(g.flow.Measured()), int64(share), int64(g.link.Estimate())
}
