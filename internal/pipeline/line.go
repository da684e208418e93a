package pipeline

import "time"

// Kind is how a stage does its work.
type Kind uint8

// The kinds.
const (
	// Events: one thread has many operations under way, such as reads of a store.
	Events Kind = iota
	// Parallel: each thread has one block at a time, such as a cipher. The monitor adapts
	// the number of threads.
	Parallel
	// Hybrid: threads begin operations and one thread hears of their ends, such as a
	// network's.
	Hybrid
)

// StageConfig describes a stage.
type StageConfig struct {
	Name    string
	Kind    Kind
	Bound   int // blocks in its queue
	Threads int // blocks that it has in hand at a time; of Events and Hybrid, operations
}

// Line is stages one behind the other, without threads and clock: times are its caller's,
// in ns. It is used by one goroutine at a time.
type Line struct {
	stages []stage
}

type stage struct {
	StageConfig
	queue   []*Block
	hand    int      // blocks taken and not passed on
	held    []*Block // done, for which the next queue has no room; the oldest first
	from    int64    // since when the counters count
	served  int64
	service int64 // ns, of the served
	taken   int64
	delay   int64 // ns in the queue, of the taken
}

// NewLine makes a line of stages.
func NewLine(stages ...StageConfig) *Line {
	l := &Line{stages: make([]stage, len(stages))}
	for i, c := range stages {
		l.stages[i] = stage{StageConfig: c}
	}
	return l
}

// Stages returns the number of stages.
func (l *Line) Stages() int { return len(l.stages) }

// Threads returns how many blocks a stage may have in hand.
func (l *Line) Threads(i int) int { return l.stages[i].Threads }

// SetThreads changes that. What the stage has already stays there.
func (l *Line) SetThreads(i, threads int) { l.stages[i].Threads = threads }

// Room reports whether the queue of a stage has room.
func (l *Line) Room(i int) bool { return len(l.stages[i].queue) < l.stages[i].Bound }

// Queued counts the blocks in a stage's queue.
func (l *Line) Queued(i int) int { return len(l.stages[i].queue) }

// InHand counts the blocks that a stage has taken and not passed on.
func (l *Line) InHand(i int) int { return l.stages[i].hand }

// Empty reports whether no stage has a block.
func (l *Line) Empty() bool {
	for i := range l.stages {
		if l.stages[i].hand > 0 || len(l.stages[i].queue) > 0 {
			return false
		}
	}
	return true
}

// Offer puts a block into the queue of a stage. False: there is no room.
func (l *Line) Offer(i int, b *Block, now int64) bool {
	s := &l.stages[i]
	if !l.Room(i) {
		return false
	}
	b.since = now
	s.queue = append(s.queue, b)
	return true
}

// Take gives a stage the oldest block of its queue; nil: there is none, or all threads have
// one.
func (l *Line) Take(i int, now int64) *Block {
	s := &l.stages[i]
	if len(s.queue) == 0 || s.hand >= s.Threads {
		return nil
	}
	b := s.queue[0]
	s.queue = append(s.queue[:0], s.queue[1:]...)
	s.hand++
	s.taken++
	s.delay += now - b.since
	b.since = now
	if i > 0 {
		l.pass(i-1, now)
	}
	return b
}

// Done says that a stage has done its work on a block. It goes to the next queue as soon
// as that has room; its thread has it until then. Behind the last stage it is the caller's,
// and true is returned.
func (l *Line) Done(i int, b *Block, now int64) (out bool) {
	l.count(i, b, now)
	if i == len(l.stages)-1 {
		l.stages[i].hand--
		return true
	}
	l.stages[i].held = append(l.stages[i].held, b)
	l.pass(i, now)
	return false
}

// Drop is Done of a block that no later stage is to have: it is the caller's.
func (l *Line) Drop(i int, b *Block, now int64) {
	l.count(i, b, now)
	l.stages[i].hand--
}

func (l *Line) count(i int, b *Block, now int64) {
	s := &l.stages[i]
	s.served++
	s.service += now - b.since
}

// pass moves what a stage holds into the next queue, as long as that has room.
func (l *Line) pass(i int, now int64) {
	s := &l.stages[i]
	for len(s.held) > 0 && l.Offer(i+1, s.held[0], now) {
		s.held = append(s.held[:0], s.held[1:]...)
		s.hand--
	}
}

// Clear takes all blocks out that no stage works on: they are the caller's.
func (l *Line) Clear() (all []*Block) {
	for i := range l.stages {
		s := &l.stages[i]
		all = append(append(all, s.queue...), s.held...)
		s.hand -= len(s.held)
		s.queue, s.held = nil, nil
	}
	return all
}

// Sample is how a stage did over some time.
type Sample struct {
	Kind    Kind
	Threads int
	Rate    float64       // blocks served in a second
	Service time.Duration // mean of the served
	Delay   time.Duration // mean in the queue, of those taken
}

// Samples says how all stages did since the last call, and begins anew.
func (l *Line) Samples(now int64) []Sample {
	all := make([]Sample, len(l.stages))
	for i := range l.stages {
		s := &l.stages[i]
		all[i] = Sample{Kind: s.Kind, Threads: s.Threads}
		if now > s.from {
			all[i].Rate = float64(s.served) * float64(time.Second) / float64(now-s.from)
		}
		if s.served > 0 {
			all[i].Service = time.Duration(s.service / s.served)
		}
		if s.taken > 0 {
			all[i].Delay = time.Duration(s.delay / s.taken)
		}
		s.from, s.served, s.service, s.taken, s.delay = now, 0, 0, 0, 0
	}
	return all
}
