package target

import (
	"math/bits"
	"slices"

	"lunar/scheduler"
	"lunar/scheduler/qtcp"
)

// pacing bounds how much of writes' data a connection has asked for and not got, by the
// latency form of QTCP: the time from an R2T to its last byte, which is all that the target
// sees of the initiator's sending, compared with the target of the class. It belongs to the
// connection's event thread. The zero value bounds nothing.
type pacing struct {
	conn    *Connection
	network *scheduler.Network // nil: off
	target  float64            // of the class, ns
	flow    qtcp.Flow
	asked   int               // bytes asked for and not here
	bound   bool              // something had to wait in this round
	rest    int               // bytes until the round ends
	came    int               // sequences of the round
	marked  int               // of them, those that took too long
	least   [33]qtcp.Shortest // time of sequences, by the power of two of their length
	waiting []uint32          // tags of tasks that may not ask, in order
	calling bool              // the first of them asks
	due     bool              // Run is queued
}

const (
	// pacedPacket is the unit of the window, in bytes: what Ethernet carries of TCP.
	pacedPacket = 1448
	// firstAsked is the first window, in packets: about one R2T of 256 KiB.
	firstAsked = 181
	// leastAsked is what may be asked for in any case, in bytes: an R2T for less would cost
	// more than its data.
	leastAsked = 16 << 10
)

// follow puts the connection under the network of a class, or ends that. In another class the
// window stays what it was.
func (p *pacing) follow(c *Connection, class NetworkClass) {
	on := p.network != nil
	p.conn, p.network = c, class.Network
	if p.network == nil {
		p.wakeLater()
		return
	}
	p.target = float64(p.network.Targets[class.Class])
	if p.target == 0 {
		p.target = scheduler.DefaultTarget
	}
	if !on {
		p.flow, p.least = qtcp.NewFlow(firstAsked), [33]qtcp.Shortest{}
		p.begin()
	}
}

func (p *pacing) begin() {
	p.rest, p.came, p.marked, p.bound = p.window(), 0, 0, false
}

// window is how many bytes may be asked for.
func (p *pacing) window() int { return max(leastAsked, int(p.flow.Window()*pacedPacket)) }

// admits is how many of n bytes a task may ask for now: all or, if the window has room for
// less, a part. With 0 it will be called upon, behind those who wait already.
func (p *pacing) admits(t *task, n int) int {
	if !t.paced && (p.calling || len(p.waiting) == 0) {
		room := p.window() - p.asked
		if n <= room {
			return n
		}
		if part := room / leastAsked * leastAsked; part > 0 {
			p.bound = true
			return part
		}
	}
	p.bound = true
	if !t.paced {
		t.paced = true
		p.waiting = append(p.waiting, t.itt)
	}
	return 0
}

// leave takes back all that a task has asked for, and its wait: a peer that sends nothing and
// aborts what it has begun would make the list longer without end.
func (p *pacing) leave(t *task) {
	if t.paced {
		t.paced = false
		p.waiting = slices.DeleteFunc(p.waiting, func(itt uint32) bool { return itt == t.itt })
	}
	if t.asked > 0 {
		p.settle(t, t.asked)
	}
}

// opened notes what a task has asked for at now.
func (p *pacing) opened(t *task, s *sequence, now int64) {
	n := int(s.end - s.next)
	s.asked, s.length = now, uint32(n)
	t.asked += n
	p.asked += n
}

// closed notes the end of a sequence at now.
func (p *pacing) closed(t *task, s *sequence, now int64) {
	p.settle(t, int(s.length))
	if p.network == nil || s.asked == 0 {
		return
	}
	took := max(1, now-s.asked)
	least := p.least[bits.Len32(s.length)].Take(took, now)
	p.flow.Measure(float64(took))
	p.came++
	if took > least+p.network.Delay {
		p.marked++
	}
	if p.rest -= int(s.length); p.rest <= 0 {
		p.round()
	}
}

// round ends a round in which a window's worth of data has come.
func (p *pacing) round() {
	before := p.flow.Window()
	p.flow.Update(float64(p.marked)/float64(p.came), p.flow.Lateness(p.target))
	if !p.bound {
		p.flow.Use(before)
	}
	p.begin()
}

// settle takes back what a task had asked for.
func (p *pacing) settle(t *task, n int) {
	n = min(n, t.asked)
	t.asked -= n
	p.asked -= n
	p.wakeLater()
}

func (p *pacing) wakeLater() {
	if len(p.waiting) > 0 && !p.due {
		p.due = true
		p.conn.thread.loop.AtPassEnd(p)
	}
}

// Run implements evloop.Task: those who wait ask, in order, as far as the window goes. Who
// may ask for a part alone goes behind the others. Tasks of a lost connection ask on the one
// that they are reassigned to.
func (p *pacing) Run() {
	p.due = false
	if p.conn.closed {
		return
	}
	defer p.conn.sessionState.Contain()
	for len(p.waiting) > 0 && (p.network == nil || p.asked < p.window()) {
		t := p.conn.tasks.find(p.waiting[0])
		p.waiting = append(p.waiting[:0], p.waiting[1:]...)
		if t == nil || t.conn != p.conn {
			continue
		}
		t.paced, p.calling = false, true
		t.renew()
		t.solicit()
		if p.calling = false; t.paced {
			return // what it has asked for, or others have, calls again
		}
	}
}

// told is what the explanation shows.
func (p *pacing) told() (out Pacing) {
	if p.network != nil {
		out.Window = int64(p.window())
	}
	return out
}
