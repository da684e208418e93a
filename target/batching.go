package target

import (
	"sync/atomic"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler/batch"
	"lunar/target/pdu"
)

// batching decides how many small requests an event thread works on together:
// how many responses of a connection leave in one system call, and for how long
// the thread leaves its sockets alone so that more requests are there when it
// looks. What a pass of the thread then finds is executed and submitted to the
// backing stores in one go.
//
// The first is Tyche's batch level, which follows the throughput (package batch): a
// connection's responses leave as soon as there are as many as the level, and all at
// the end of the pass. Responses that are ready are never kept back for others.
//
// The second is a rest after a pass. It delays nobody who would notice: it takes a
// part of the time that the initiators need for responses that they have not looked
// at (intake.go), and while it costs throughput there is none (experiment.go). With a
// static level the thread rests for as long as the level takes to gather. A thread
// that serves somebody of the class Urgent never rests.
type batching struct {
	loop  *evloop.Loop
	gate  *gate
	mode  batch.Mode
	delay int64 // the longest rest, ns
	level batch.Level

	together int // responses of a connection that leave together: the level, but no less than leastBatch

	listed     []*intake // of connections that small commands came from in this pass
	commands   int       // of them, in this pass
	bytes      int
	eager      int64 // until then there is no rest
	experiment experiment
	idle       time.Duration // of the thread, when the window of the experiment began

	served batches
}

// batches counts for anyone to read: the thread writes.
type batches struct {
	_        [cacheLine]byte
	level    atomic.Int64  // now
	commands atomic.Uint64 // small ones that came through a socket
	passes   atomic.Uint64 // in which they came
	_        [cacheLine]byte
}

const (
	// restShortest is the shortest rest: one less long would cost more than it saves.
	restShortest = 6 * time.Microsecond
	// eagerTime is for how long a thread does not rest because of an initiator
	// that keeps up, or of a large command.
	eagerTime = time.Millisecond
	// smallCommand is the most bytes of a command that is worth gathering.
	smallCommand = 16 << 10
	// leastBatch is how many responses leave together at least, if so many are ready
	// in a pass, with an adaptive level: to send fewer costs more than the time that
	// the initiator gains (docs/reports/performance.md).
	leastBatch = 8
	// maxUnseen is the most responses that an initiator can have left to look at.
	maxUnseen = 4096
	// levelInterval is how often the level changes: often enough to follow a burst,
	// while thousands of requests are still compared.
	levelInterval = 100 * time.Millisecond
)

// defaultBatching is adaptive.
func defaultBatching() *batch.Config {
	return &batch.Config{Mode: batch.Adaptive, Delay: batch.ServerDelay}
}

func (b *batching) start(c batch.Config, loop *evloop.Loop, g *gate) {
	c.Interval = int64(levelInterval)
	b.loop, b.gate, b.mode, b.delay = loop, g, c.Mode, c.Delay
	b.level.Start(c, evloop.Monotonic())
	b.show()
}

// show tells the transports, and those who ask, the level.
func (b *batching) show() {
	level := b.level.Current()
	if b.mode == batch.Adaptive {
		level = max(level, leastBatch)
	}
	b.together = level
	if int64(level) != b.served.level.Load() {
		b.served.level.Store(int64(level))
	}
}

// gather notes a command of edtl bytes that came at a time, with the ExpStatSN seen;
// next is the StatSN that follows.
func (b *batching) gather(p *intake, edtl uint32, at int64, seen, next pdu.SN) {
	if edtl > smallCommand {
		b.eager = at + int64(eagerTime)
		return
	}
	b.commands++
	b.bytes += int(edtl)
	p.seen = seen
	if p.left = uint32(next - seen); p.left > maxUnseen {
		p.left = 0 // it makes things up
	}
	if !p.listed {
		p.listed = true
		b.listed = append(b.listed, p)
		if len(b.listed) == 1 {
			b.loop.AtPassEnd(b)
		}
	}
}

// Run implements evloop.Task: it follows a pass in which small commands came.
func (b *batching) Run() {
	now, connections := b.loop.Now(), len(b.listed)
	alone, each := b.delay, int64(0)
	for i, p := range b.listed {
		alone = min(alone, p.judge(now))
		each = max(each, p.each)
		p.listed = false
		b.listed[i] = nil
	}
	b.listed = b.listed[:0]
	commands := b.commands
	b.learn(now, commands, connections)
	b.commands, b.bytes = 0, 0
	switch {
	case b.gate.Urgent(): // the next command may be theirs
	case alone < 0:
		b.eager = now + int64(eagerTime)
	case now >= b.eager:
		b.rest(alone, each*int64(b.level.Current()-commands))
	}
}

// learn feeds the controllers with a pass. Of those that came in one read each
// waited, on average, for half of the others.
func (b *batching) learn(now int64, commands, connections int) {
	b.level.Waiting((commands/connections-1)/2, now)
	b.level.Completed(b.bytes, now)
	b.show()
	b.served.commands.Add(uint64(commands))
	b.served.passes.Add(1)
	b.experiment.commands += int64(commands)
	if b.experiment.due(now) {
		idle := b.loop.Stats().Idle
		b.experiment.judge(now, int64(idle-b.idle))
		b.idle = idle
	}
}

// rest lets more requests gather: alone is for how long the initiators can be left
// alone, gathering how long they take to send what the level lacks.
func (b *batching) rest(alone, gathering int64) {
	switch {
	case b.mode == batch.Static && gathering > 0:
		b.loop.Rest(time.Duration(min(gathering, b.delay)))
	case b.mode == batch.Adaptive && alone >= int64(restShortest) && b.experiment.resting():
		b.loop.Rest(time.Duration(alone))
	}
}
