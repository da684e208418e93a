package target

import (
	"time"

	"lunar/internal/evloop"
	"lunar/internal/latency"
)

const (
	// maxUses bounds the initiators' uses of volumes that an event thread times apart:
	// 3 KiB each.
	maxUses = 1024
	// maxTimed bounds the initiators that the server tells apart, over all threads.
	maxTimed = 1024
	// latencyInterval is how often a new interval begins whose latencies are told.
	latencyInterval = 10 * time.Second
)

// latencies times the commands of an event thread: from the pass in which they were
// received to when what they are answered has left. They are counted when the loop looks
// at the clock after the pass. With an evloop.Order, answers leave earlier and passes are
// long, so the clock is read for each.
type latencies struct {
	*latency.Table
	loop  *evloop.Loop
	ended latency.Batch // their answers may not have left
}

func newLatencies(loop *evloop.Loop) latencies {
	return latencies{Table: latency.NewTable(maxUses), loop: loop}
}

// begin is when a command came that is being received.
func (l *latencies) begin() int64 {
	if l.loop.Ahead() {
		return evloop.Monotonic()
	}
	return l.loop.Now()
}

// end counts a command that has ended.
func (l *latencies) end(slot *latency.Slot, op latency.Operation, since int64) {
	if l.ended.Add(slot, op, since) || l.loop.Ordered() {
		l.record()
	}
}

// Lap implements evloop.Stopwatch.
func (l *latencies) Lap(now int64) {
	if !l.ended.Empty() {
		l.ended.Count(now)
	}
}

// record counts what has ended so far, in the midst of a pass.
func (l *latencies) record() {
	if !l.ended.Empty() {
		l.ended.Count(evloop.Monotonic())
	}
}
