package target

import (
	"time"

	"lunar/target/pdu"
)

// An initiator that is slower than this server always has responses that it has
// not looked at. As long as it works them off, it does not notice when new ones
// come a little later and several at a time, while here a pass that serves several
// commands costs little more than one that serves a single one. What an initiator
// has looked at, it says itself: by the ExpStatSN of its commands. So the thread
// rests for a part of the time that the initiator with the fewest responses left
// needs for them. Who has one command at a time, or keeps up, makes the thread stay
// awake for a while: of others' rests, only the first of such commands may see one.
// Responses that are still on their way look like those that the initiator has not
// come to, so whether rests cost throughput is tried out (trial.go).

const (
	// restFrom is how many responses an initiator must have left.
	restFrom = 6
	// restLongest and restShortest bound a rest; a shorter one would cost more
	// than it saves.
	restLongest  = 50 * time.Microsecond
	restShortest = 6 * time.Microsecond
	// eagerTime is for how long a thread does not rest because of an initiator
	// that keeps up, or of a large command.
	eagerTime = time.Millisecond
	// smallCommand is the most bytes of a command that is worth gathering.
	smallCommand = 16 << 10
)

// pace is what is known of how fast an initiator takes responses.
type pace struct {
	listed bool   // commands of it came in this pass
	left   uint32 // responses that it had not looked at when it sent the last one
	seen   pdu.SN // ExpStatSN of that
	peak   uint32 // of left, fading: many initiators look at all they have got, and then send
	since  pdu.SN // ExpStatSN at the time at
	at     int64
	each   int64 // nanoseconds that it takes for a response when it has enough of them: the least, rising slowly
}

// rest decides on a thread's rests.
type rest struct {
	thread *thread
	listed []*Connection // those that commands came from in this pass
	eager  int64         // until then there is no rest
	trial  trial
	idle   time.Duration // of the thread, when the window of the trial began
}

// gather notes a command.
func (c *Connection) gather(t *task) {
	r, p := &c.thread.rest, &c.pace
	if t.cmd.EDTL > smallCommand {
		r.eager = t.moved + int64(eagerTime)
		return
	}
	r.trial.commands++
	p.seen = t.expStatSN
	if p.left = uint32(c.statSN - p.seen); p.left > maxQueued {
		p.left = 0 // it makes things up
	}
	if !p.listed {
		p.listed = true
		r.listed = append(r.listed, c)
		if len(r.listed) == 1 {
			c.thread.loop.AtPassEnd(r)
		}
	}
}

// Run implements evloop.Task: it follows a pass in which commands came.
func (r *rest) Run() {
	now := r.thread.loop.Now()
	shortest := int64(restLongest)
	for i, c := range r.listed {
		shortest = min(shortest, c.pace.judge(now))
		c.pace.listed = false
		r.listed[i] = nil
	}
	r.listed = r.listed[:0]
	if r.trial.over(now) {
		idle := r.thread.loop.Stats().Idle
		r.trial.judge(now, int64(idle-r.idle))
		r.idle = idle
	}
	switch {
	case shortest < 0:
		r.eager = now + int64(eagerTime)
	case now >= r.eager && shortest >= int64(restShortest) && r.trial.resting():
		r.thread.loop.Rest(time.Duration(shortest))
	}
}

// paceResponses are needed for an estimate of the time that one takes.
const paceResponses = 16

// judge returns for how long the initiator can be left alone, in nanoseconds;
// negative if it keeps up.
func (p *pace) judge(now int64) int64 {
	p.peak = max(p.left, p.peak-(p.peak+7)/8)
	if p.peak < restFrom {
		p.at = 0
		return -1
	}
	switch n := int64(p.seen - p.since); {
	case p.at == 0:
		p.since, p.at, p.each = p.seen, now, 0
	case n >= paceResponses:
		each := (now - p.at) / n
		if p.each != 0 {
			each = min(each, p.each+p.each/64+1)
		}
		p.since, p.at, p.each = p.seen, now, each
	}
	return int64(p.peak) * p.each / 3
}
