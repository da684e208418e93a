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
// at (intake), and while it costs throughput there is none (experiment). With a
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
	b.show(b.level.Current())
}

// show tells the transports, and those who ask, the level.
func (b *batching) show(level int) {
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
	case b.gate.ruled && b.gate.Urgent(): // the next command may be theirs
	case alone < 0:
		b.eager = now + int64(eagerTime)
	case now >= b.eager:
		b.rest(alone, each*int64(b.level.Current()-commands))
	}
}

// learn feeds the controllers with a pass. Of those that came in one read each
// waited, on average, for half of the others.
func (b *batching) learn(now int64, commands, connections int) {
	b.show(b.level.Pass((commands/connections-1)/2, b.bytes, now))
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

// An initiator that is slower than this server always has responses that it has
// not looked at. As long as it works them off, it does not notice when new ones
// come a little later and several at a time, while here a pass that serves several
// commands costs little more than one that serves a single one. What an initiator
// has looked at, it says itself: by the ExpStatSN of its commands. So the thread
// rests for a part of the time that the initiator with the fewest responses left
// needs for them. Who has one command at a time, or keeps up, makes the thread stay
// awake for a while: of others' rests, only the first of such commands may see one.
// Responses that are still on their way look like those that the initiator has not
// come to, so whether rests cost throughput is found out (experiment).

// restFrom is how many responses an initiator must have left.
const restFrom = 6

// intake is what is known of how fast an initiator takes responses.
type intake struct {
	listed bool   // commands of it came in this pass
	left   uint32 // responses that it had not looked at when it sent the last one
	seen   pdu.SN // ExpStatSN of that
	peak   uint32 // of left, fading: many initiators look at all they have got, and then send
	since  pdu.SN // ExpStatSN at the time at
	at     int64
	each   int64 // nanoseconds that it takes for a response when it has enough of them: the least, rising slowly
}

// intakeResponses are needed for an estimate of the time that one takes.
const intakeResponses = 16

// judge returns for how long the initiator can be left alone, in nanoseconds;
// negative if it keeps up.
func (p *intake) judge(now int64) int64 {
	p.peak = max(p.left, p.peak-(p.peak+7)/8)
	if p.peak < restFrom {
		p.at = 0
		return -1
	}
	switch n := int64(p.seen - p.since); {
	case p.at == 0:
		p.since, p.at, p.each = p.seen, now, 0
	case n >= intakeResponses:
		each := (now - p.at) / n
		if p.each != 0 {
			each = min(each, p.each+p.each/64+1)
		}
		p.since, p.at, p.each = p.seen, now, each
	}
	return int64(p.peak) * p.each / 3
}

const (
	// windowTime is how long commands are counted to know their rate.
	windowTime = 16 * time.Millisecond
	// restWindows is for how many windows a thread may rest before it is looked
	// again how fast it is without.
	restWindows = 16
	// experimentPause is how many windows pass after rests were found to cost
	// throughput, until they are tried again.
	experimentPause = 32
	// costPercent is what rests may seem to cost: windows differ by some percent
	// anyway.
	costPercent = 4
	// dropPercent is what a window with rests may lack before it is looked at once
	// how fast the thread is without.
	dropPercent = 20
	// idlePercent is how much of its time a thread must have had nothing to do: one
	// that is busy has no time to rest.
	idlePercent = 20
)

// experiment finds out whether rests cost throughput: it compares windows with rests to the
// one that follows without, because a load that has just begun grows. It has no clock
// of its own.
type experiment struct {
	phase    experimentPhase
	commands int64 // in this window
	began    int64 // the window, in nanoseconds
	left     int   // windows of the phase
	without  int64 // commands per second in the last window without rests
	with     int64 // and with
}

// experimentPhase is what a window is for.
type experimentPhase uint8

const (
	working  experimentPhase = iota // without rests
	trying                          // a window with rests
	resting                         // with rests, which cost nothing
	checking                        // a window without, to compare with
)

// resting reports whether the thread may rest in this window.
func (t *experiment) resting() bool { return t.phase == trying || t.phase == resting }

// due reports whether the window has ended.
func (t *experiment) due(now int64) bool { return now-t.began >= int64(windowTime) }

// judge ends the window, in which the thread was idle for so many nanoseconds. One
// that took far too long, because there was nothing to do, says nothing, and what comes
// behind it may be another load.
func (t *experiment) judge(now, idle int64) {
	took, commands := now-t.began, t.commands
	t.began, t.commands = now, 0
	if took > 4*int64(windowTime) {
		if t.phase != working {
			t.phase, t.left = working, 0
		}
		return
	}
	rate := commands * int64(time.Second) / took
	switch t.phase {
	case working:
		t.without = rate
		if t.left--; t.left <= 0 && idle*100 >= took*idlePercent {
			t.phase = trying
		}
	case trying:
		t.with = rate
		t.phase = checking
	case resting:
		t.with = rate
		if t.left--; t.left <= 0 || t.costs(dropPercent) {
			t.phase = checking
		}
	case checking:
		t.without = rate
		if idle*100 < took*idlePercent {
			t.stop() // rests only look free while rates differ by more than they cost
		} else {
			t.compare()
		}
	}
}

// compare decides whether to rest: not if that costs throughput.
func (t *experiment) compare() {
	if t.costs(costPercent) {
		t.stop()
	} else {
		t.phase, t.left = resting, restWindows
	}
}

// costs reports whether rests cost more than so many percent.
func (t *experiment) costs(percent int64) bool { return t.with*100 < t.without*(100-percent) }

// stop makes the thread work without rests for a while.
func (t *experiment) stop() { t.phase, t.left = working, experimentPause }
