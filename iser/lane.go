package iser

import (
	"lunar/scheduler"
	"lunar/scheduler/qrdma"
	"lunar/target/bottleneck"
)

// lookAgain is how long, in ns, a lane that has to wait is not looked at: its rate, and what
// its class may have, change meanwhile.
const lookAgain = 5_000_000

// lane is one way of a governed connection: it says when something may be posted, and counts
// among those that share the link while it has something to move. Times are in ns on the clock
// of the loop.
type lane struct {
	link   *bottleneck.Link
	member bottleneck.Member
	pacer  qrdma.Pacer
	stamps ring[qrdma.Stamp] // of what the device has
	joined bool              // it counts in the link's connections
	used   bool              // it had something to move, since the last tick
}

// open begins with a lane of a class.
func (l *lane) open(link *bottleneck.Link, class scheduler.Class, delay, now int64) {
	l.link, l.member.Class = link, bottleneck.Class(class)
	l.pacer = qrdma.NewPacer(qrdma.NewLine(link.Rate()), delay, now)
}

// wait is how long it takes until the lane, which has something to move, is to be asked again;
// 0: it may be posted now.
func (l *lane) wait(now int64) int64 {
	l.used = true
	if !l.joined {
		l.joined = true
		l.link.Join(&l.member, now)
	}
	l.update(now)
	wait := l.pacer.Wait(now)
	if wait > 0 {
		wait = min(max(wait, qrdma.Interval), lookAgain)
	}
	return wait
}

// posted notes what was posted at now.
func (l *lane) posted(bytes int, now int64) { *l.stamps.push() = l.pacer.Post(int64(bytes), now) }

// ended notes the end of the first that was posted.
func (l *lane) ended(now int64) {
	l.used = true
	l.pacer.End(*l.stamps.pop(), now)
	l.update(now)
}

// update tells the flow and the link of the intervals that have passed.
func (l *lane) update(now int64) {
	if l.pacer.Due(now) {
		l.member.Late.Store(l.pacer.Look(now, l.link.Allowance(l.member.Class, now)))
		l.member.Measured.Store(int64(l.pacer.Measured()))
	}
}

// tick has a lane leave that had nothing to move of late. It reports whether the lane counts.
func (l *lane) tick() bool {
	if !l.used && l.stamps.len() == 0 {
		l.member.Measured.Store(0)
		l.member.Late.Store(false)
		l.leave()
	}
	l.used = false
	return l.joined
}

func (l *lane) leave() {
	if l.joined {
		l.joined = false
		l.link.Leave(&l.member)
	}
}
