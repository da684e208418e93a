package load

import (
	"time"
)

// arm runs f on the loop after a while, replacing what was armed before.
func (e *engine) arm(after time.Duration, f func()) {
	e.timer.Fire = f
	e.loop.Arm(&e.timer, after)
}

func (e *engine) start() {
	if e.workload.RealTime {
		if err := preferThread(); err != nil {
			e.fail(err)
			return
		}
	}
	e.issuing = true
	if e.workload.Warmup > 0 {
		e.arm(e.workload.Warmup, e.measure)
	} else {
		e.measure()
	}
	e.turnAll()
}

func (e *engine) turnAll() {
	for _, c := range e.connections {
		if e.err == nil {
			c.Run()
		}
	}
}

func (e *engine) measure() {
	e.measuring = true
	e.from = e.sample()
	e.arm(e.workload.Runtime, e.drain)
}

// drain ends the measurement and waits for the commands outstanding.
func (e *engine) drain() {
	e.to = e.sample()
	e.measuring, e.measured = false, true
	e.issuing = false
	e.arm(drainTime, e.giveUp)
	e.checkDrained()
}

func (e *engine) giveUp() { e.fail(errUnanswered) }

// cancel ends a run early.
func (e *engine) cancel() {
	switch {
	case e.measuring:
		e.drain()
	case !e.measured:
		e.fail(errStopped)
	case e.readingBack:
		e.readBackDone = true
		e.checkDrained()
	}
}

// checkDrained moves on when nothing is outstanding in a phase that waits for it.
func (e *engine) checkDrained() {
	if e.err != nil || e.live > 0 || e.issuing && !e.readBackDone {
		return
	}
	if e.ledger != nil && !e.readingBack {
		e.readBack()
		return
	}
	e.loop.Stop()
}

// readBack reads every block of known content once more.
func (e *engine) readBack() {
	e.readingBack, e.issuing = true, true
	e.loop.Disarm(&e.timer)
	e.turnAll()
}

// nextReadBack returns the next read of that phase; there is nothing that it
// could collide with.
func (e *engine) nextReadBack() (operation, bool) {
	if e.readBackDone {
		return operation{}, false
	}
	op, ok := e.ledger.nextWritten(e.readBackFrom, e.workload.largest()/e.unit.BlockSize)
	if !ok {
		e.readBackDone = true
		return op, false
	}
	e.readBackFrom = op.lba + uint64(op.blocks)
	return op, e.ledger.claim(op)
}

func (e *engine) fail(err error) {
	if e.err == nil {
		e.err = err
		e.loop.Stop()
	}
}
