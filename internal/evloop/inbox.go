package evloop

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	cacheLine        = 64
	defaultInboxSize = 1024
)

// inbox is a bounded multi-producer ring (after Vyukov) with an unbounded list
// behind it. A cell's turn says whose it is: equal to the position, a producer's;
// one more, the consumer's.
//
// While the list holds tasks every post goes there, and the consumer takes it
// only when the ring is empty. So the tasks of one goroutine stay in order.
type inbox struct {
	cells []cell
	mask  uint64
	_     [cacheLine]byte
	tail  atomic.Uint64 // next position to claim
	_     [cacheLine]byte
	head  uint64 // next position to run; the consumer's
	spare []Task // the list's other half; the consumer's
	_     [cacheLine]byte

	spilled atomic.Bool // list is not empty
	list    struct {
		sync.Mutex
		tasks []Task
	}
}

type cell struct {
	turn atomic.Uint64
	task Task
}

func (b *inbox) init(size int) {
	if size <= 0 {
		size = defaultInboxSize
	}
	n := 2 // with one cell, filled would look like free for the next lap
	for n < size {
		n *= 2
	}
	b.cells, b.mask = make([]cell, n), uint64(n-1)
	for i := range b.cells {
		b.cells[i].turn.Store(uint64(i))
	}
}

func (b *inbox) post(t Task) {
	if b.spilled.Load() || !b.push(t) {
		b.spill(t)
	}
}

// push claims a cell and fills it, or reports that the ring is full.
func (b *inbox) push(t Task) bool {
	for {
		at := b.tail.Load()
		c := &b.cells[at&b.mask]
		turn := c.turn.Load()
		switch {
		case turn < at:
			return false
		case turn == at && b.tail.CompareAndSwap(at, at+1):
			c.task = t
			c.turn.Store(at + 1)
			return true
		}
	}
}

func (b *inbox) spill(t Task) {
	b.list.Lock()
	b.list.tasks = append(b.list.tasks, t)
	b.spilled.Store(true)
	b.list.Unlock()
}

// empty reports that nothing was posted, not even claimed, beyond what ran.
func (b *inbox) empty() bool { return b.tail.Load() == b.head && !b.spilled.Load() }

// run runs what was posted before it began and returns the number of tasks. It
// stops early at a cell that is claimed but not filled yet, because its producer
// was preempted between the two; empty stays false until then.
func (b *inbox) run() int {
	n := 0
	for end := b.tail.Load(); b.head != end; n++ {
		t := b.pop()
		if t == nil {
			runtime.Gosched()
			return n
		}
		t.Run()
	}
	if b.spilled.Load() {
		n += b.runList()
	}
	return n
}

// pop takes the next task, nil when it is not there yet.
func (b *inbox) pop() Task {
	c := &b.cells[b.head&b.mask]
	if c.turn.Load() != b.head+1 {
		return nil
	}
	t := c.task
	c.task = nil
	c.turn.Store(b.head + uint64(len(b.cells)))
	b.head++
	return t
}

// runList runs the list, unless the ring has tasks that are older.
func (b *inbox) runList() int {
	b.list.Lock()
	if b.tail.Load() != b.head {
		b.list.Unlock()
		return 0
	}
	tasks := b.list.tasks
	b.list.tasks, b.spare = b.spare[:0], nil
	b.spilled.Store(false)
	b.list.Unlock()
	for i, t := range tasks {
		tasks[i] = nil
		t.Run()
	}
	b.spare = tasks[:0]
	return len(tasks)
}
