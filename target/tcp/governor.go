package tcp

import (
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/scheduler/qtcp"
	"lunar/target"
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
	link    *link
	member  membership
	flow    qtcp.Flow
	timer   evloop.Timer

	info   unix.TCPInfo // of the last look
	packet int          // bytes
	ahead  uint64       // bytes that the kernel has taken beyond mover.tx.total: those of the login
	began  int64        // of the round trip
	first  round        // what the kernel had counted then
	rtt    int64        // ns, at least leastRTT
	bound  bool         // the window held something back in this round trip
	entry  *shareEntry  // of the kernel, which holds the window; nil: the governor does
	before string       // the congestion control that it took the place of
	joined bool         // it counts in the link's flows
	idle   bool         // nothing was under way at the last look
}

// round is what the kernel counts of a connection.
type round struct {
	acked             uint64 // bytes
	delivered, marked uint32 // packets
}

const (
	// firstWindow is the kernel's initial window, in packets (RFC 6928).
	firstWindow = 10
	// leastRTT bounds how often the kernel is asked.
	leastRTT = 100_000
	// looks is how often it is asked in a round trip while the window holds something back:
	// what is acknowledged makes room that nobody tells of.
	looks = 4
	// idleTime is how long a connection counts among those that share the link though it
	// has nothing to send.
	idleTime = 200 * time.Millisecond
	// tellTime is how often the kernel is told what a connection should get.
	tellTime = 5 * time.Millisecond
	// optionECN is the bit of tcpi_options by which the kernel says that the connection has
	// agreed on ECN.
	optionECN = 8
)

var qtcpClass = scheduler.ByClass[qtcp.Class]{scheduler.High: qtcp.High, scheduler.Medium: qtcp.Medium, scheduler.Low: qtcp.Low}

// govern puts a connection under a network's classes, or ends that: nil.
func (m *mover) govern(c target.NetworkClass) {
	if old := m.gov; old != nil {
		old.end()
		m.gov = nil
	}
	if c.Network != nil {
		m.gov = newGovernor(m, c)
	}
	if m.tx.held {
		m.tx.held = false
		m.scheduleFlush()
	}
}

func newGovernor(m *mover, c target.NetworkClass) *governor {
	g := &governor{mover: m, network: c.Network, flow: qtcp.NewFlow(firstWindow), rtt: leastRTT, idle: true}
	g.member.class = qtcpClass[c.Class]
	g.link = m.scratch.links.of(localOf(m.fd), c.Network)
	g.timer.Fire = g.look
	if c.Network.Governor == scheduler.KernelGovernor {
		if before, err := m.scratch.links.kernel.take(m.fd); err == nil {
			g.before, g.entry = before, &shareEntry{share: kernelqtcp.Share{DelayUS: uint64(c.Network.Delay / 1000)}}
		} else {
			m.scratch.links.fallBack(err)
		}
	}
	g.ask()
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
		g.link.leave(&g.member)
	}
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
	room := int(g.flow.Window()*float64(g.packet)) - g.underway()
	if room >= g.packet {
		return room
	}
	g.bound = true
	if tx := &g.mover.tx; !tx.held {
		tx.held, tx.since = true, g.mover.loop.Now()
		g.mover.boundLoans()
		g.mover.loop.Arm(&g.timer, g.pause())
	}
	return 0
}

// underway is how many bytes have not been acknowledged.
func (g *governor) underway() int {
	return int(g.mover.tx.total + g.ahead - g.info.Bytes_acked)
}

// pause is how long it is until the next look.
func (g *governor) pause() time.Duration {
	if g.mover.tx.held {
		return time.Duration(max(leastRTT/2, g.rtt/looks))
	}
	if g.entry != nil {
		return max(tellTime, time.Duration(g.rtt))
	}
	return time.Duration(g.rtt)
}

// wake begins a round trip of a connection that had nothing to send.
func (g *governor) wake() {
	g.idle = false
	if !g.joined {
		g.joined = true
		g.link.join(&g.member)
	}
	g.ask()
	g.begin()
	g.mover.loop.Arm(&g.timer, g.pause())
}

func (g *governor) begin() {
	g.began, g.bound = g.mover.loop.Now(), false
	g.first = round{g.info.Bytes_acked, g.info.Delivered, g.info.Delivered_ce}
}

// ask asks the kernel (tcp(7), TCP_INFO). Of a broken socket all stays as it was, which
// the next sendmsg tells.
func (g *governor) ask() {
	size := uint32(unsafe.Sizeof(g.info))
	_, _, _ = unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(g.mover.fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&g.info)), uintptr(unsafe.Pointer(&size)), 0)
	g.packet = max(1, int(g.info.Snd_mss))
	if !g.mover.tx.remote.busy {
		g.ahead = g.info.Bytes_sent - g.info.Bytes_retrans + uint64(g.info.Notsent_bytes) - g.mover.tx.total
	}
	g.rtt = max(leastRTT, int64(g.info.Rtt)*1000)
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
		g.link.leave(&g.member)
		return
	}
	g.ask()
	if m.loop.Now()-g.began >= g.rtt {
		g.round()
		g.begin()
	}
	g.release()
	if g.idle = !m.tx.pending() && g.underway() <= 0; g.idle {
		g.member.measured.Store(0)
		m.loop.Arm(&g.timer, idleTime)
		return
	}
	m.loop.Arm(&g.timer, g.pause())
}

// release lets the queue go on once the window has room.
func (g *governor) release() {
	m := g.mover
	if m.tx.held && int(g.flow.Window()*float64(g.packet))-g.underway() >= g.packet {
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
	g.member.measured.Store(int64(g.flow.Measured()))
	if g.entry != nil {
		g.link.observe(now, g.rtt)
		g.entry.share.Target = uint64(g.link.target(g.member.class))
		g.entry.put(&g.mover.scratch.links.kernel, g.mover.fd)
		return
	}
	before := g.flow.Window()
	g.flow.Update(g.congestion(delivered), g.flow.Quality(g.link.target(g.member.class)))
	if !g.bound {
		g.flow.Use(before)
	}
	g.member.slow.Store(g.bound && g.flow.SlowStart())
	g.link.observe(now, g.rtt)
}

// congestion is the share of what was delivered that was marked. Where nothing marks, all
// was if it took too long.
func (g *governor) congestion(delivered uint32) float64 {
	if g.form() == target.Marks {
		return min(1, float64(g.info.Delivered_ce-g.first.marked)/float64(delivered))
	}
	if int64(g.info.Rtt)*1000 > int64(g.info.Min_rtt)*1000+g.network.Delay {
		return 1
	}
	return 0
}

// form is what congestion is seen by.
func (g *governor) form() string {
	if g.info.Options&optionECN != 0 {
		return target.Marks
	}
	return target.Delay
}

// tell describes how the connection is governed.
func (g *governor) tell(to *target.Governance) {
	share := g.link.target(g.member.class)
	to.Form, to.Device = g.form(), g.link.name
	if g.entry != nil {
		to.Window, to.Quality = int64(g.info.Snd_cwnd)*int64(g.packet), g.flow.Quality(share)
		to.Rate, to.Target, to.Estimate = int64(g.flow.Measured()), int64(share), int64(g.link.estimate())
		return
	}
	to.Window = int64(g.flow.Window() * float64(g.packet))
	to.Alpha, to.Quality = g.flow.Alpha(), g.flow.Quality(share)
	to.Rate, to.Target, to.Estimate = int64(g.flow.Measured()), int64(share), int64(g.link.estimate())
}
