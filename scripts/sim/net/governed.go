package net

import (
	"math/rand/v2"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
)

// sense is how a server learns of congestion.
type sense uint8

const (
	byDelay sense = iota // of round trips: nothing marks
	byMarks
	byEcho // of a receiver that tells of all packets for a round trip because of a marked one (RFC 3168)
)

// governor is who bounds what is under way.
type governor uint8

const (
	nobody    governor = iota // but the kernel's congestion control
	tgtd                      // beside that (target/tcp)
	lunarQTCP                 // in its place: lunar_qtcp
)

// governed is the Control of a connection that tgtd's governor bounds (target/tcp), and its kernel.
// The governor asks the kernel a few times in a round trip, and what was acknowledged between two
// looks makes no room before the second one.
type governed struct {
	qtcp.Flow
	class qtcp.Class
	group *Group
	sense sense
	by    governor
	equal bool  // no class has a weight or a share
	late  int64 // ps: at most so much later than it should comes a look
	delay int64 // ps that queues may hold packets, by delay

	r     *rand.Rand
	stack stack
	flow  *Flow
	acked int  // packets since the last look
	lost  bool // a packet, since the last acknowledgement
	ahead qtcp.Ahead
	due   int64 // when the next look is
	holds bool  // the group's flows hold back

	trip, differs, least int64 // ps, as the kernel reckons them (RFC 6298)

	end    int64 // lunar_qtcp: the packet whose acknowledgement ends the round trip
	echoed int64 // the last packet whose acknowledgement tells of a mark, byEcho

	began             int64 // the round trip, and what there was then
	bytes             int64
	delivered, marked int64
}

// Window implements Control.
func (g *governed) Window() float64 {
	window := max(2, g.Flow.Window())
	if g.holds {
		window = 2
	}
	switch g.by {
	case nobody:
		return g.stack.window
	case lunarQTCP:
		return window
	}
	if !g.holds {
		window *= 1 + g.ahead.Windows(g.trip/Nanosecond)
	}
	return min(g.stack.window, window-float64(g.acked))
}

// Gap implements Control: the kernel paces what tgtd grants ahead.
func (g *governed) Gap(int) int64 {
	if g.by != tgtd || g.ahead.Windows(g.trip/Nanosecond) == 0 {
		return 0
	}
	return int64(float64(Second) / qtcp.Pace(max(2, g.Flow.Window()), g.trip/Nanosecond))
}

// Lost implements Control.
func (g *governed) Lost() { g.delivered, g.marked, g.lost = g.delivered+1, g.marked+1, true }

// Acknowledged implements Control.
func (g *governed) Acknowledged(now int64, f *Flow, p *Packet) {
	took := now - p.Left
	if g.flow == nil {
		g.flow, g.began, g.end = f, now, f.Sent
		g.trip, g.differs, g.least = took, took/2, took
		if g.sense == byDelay {
			g.group.came(g, now)
		}
		if g.by == tgtd {
			g.plan(now)
		}
	}
	g.least = min(g.least, took)
	off := took - g.trip
	g.trip += off / 8
	g.differs += (max(off, -off) - g.differs) / 4
	g.acked++
	g.delivered++
	marked := p.Marked
	if g.sense == byEcho {
		if marked && p.Tag > g.echoed {
			g.echoed = f.Sent
		}
		marked = marked || p.Tag <= g.echoed
	}
	if marked {
		g.marked++
	}
	g.stack.acknowledged(now, f, p, marked || g.lost)
	g.lost = false
	if g.by == lunarQTCP && p.Tag > g.end {
		g.end = f.Sent
		g.look(now, true)
	}
}

func (g *governed) plan(now int64) {
	pause := min(max(50*Microsecond, g.trip/4), 5*Millisecond)
	g.due = now + pause
	g.group.kernel.At(g.due+g.r.Int64N(g.late), kernel.TokenTick, g, 0)
}

// Fire implements kernel.Actor: a look.
func (g *governed) Fire(now int64, _ int32) {
	g.acked = 0
	g.ahead.Looked((now - g.due) / Nanosecond)
	g.look(now, now-g.began >= g.trip && g.delivered > 0)
	g.flow.send()
	g.plan(now)
}

// look ends a round trip if there is one to end. One in which the group holds back tells nothing.
func (g *governed) look(now int64, ended bool) {
	held := g.holds
	g.holds = g.sense == byDelay && g.group.holds(now)
	switch {
	case held || g.holds:
		g.begin(now)
	case ended:
		g.round(now)
	}
}

func (g *governed) begin(now int64) {
	g.began, g.bytes, g.delivered, g.marked = now, g.flow.Acked, 0, 0
}

func (g *governed) round(now int64) {
	g.Measure(float64(g.flow.Acked-g.bytes) * 8000 / float64(now-g.began))
	quality, weight := qtcp.DCTCP, 1.0
	if !g.equal {
		quality, weight = g.Quality(g.group.Device.Target(g.class)), g.group.Device.Weight(g.class)
	}
	g.UpdateWeighed(g.congestion(), quality, weight)
	g.begin(now)
}

func (g *governed) congestion() float64 {
	switch {
	case g.sense == byDelay:
		return qtcp.Excess(g.trip-g.least-2*g.differs, g.delay)
	}
	return float64(g.marked) / float64(g.delivered)
}

func (g *governed) rate(int64) float64 { return g.Measured() }
