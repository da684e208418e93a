package tier

import (
	"slices"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/arena"
)

// bounceSize is the most that is read at a time through a lane's bounce buffer.
const bounceSize = 256 << 10

// bounce is an aligned buffer for reads around the cache that go to other than
// page-aligned memory. That is rare: it needs a request that begins within a page,
// of which only a later part passes the cache. So there is one buffer for a lane,
// and a queue.
type bounce struct {
	lower *lower
	mem   []byte
	queue []*backstore.Op // reads; the first has the buffer
	done  int             // bytes
	op    backstore.Op
}

// add does a read, now or after others. It never ends at once.
func (b *bounce) add(op *backstore.Op) {
	b.queue = append(b.queue, op)
	if len(b.queue) == 1 {
		b.begin()
	}
}

// begin serves the first of the queue.
func (b *bounce) begin() {
	b.done = 0
	if b.mem == nil {
		mem, err := arena.Map(bounceSize, b.lower.loop.Memory())
		if err != nil {
			b.op.Err = err
			b.lower.loop.Again(b)
			return
		}
		b.mem = mem
		b.op.Done = func(*backstore.Op) { b.step() }
	}
	b.ask()
}

// Run implements evloop.Task: there is no buffer.
func (b *bounce) Run() { b.pop() }

func (b *bounce) ask() {
	asked := b.queue[0]
	rest := asked.Data[b.done:]
	b.op.Kind, b.op.Off, b.op.Data = backstore.Read, asked.Off+int64(b.done), b.mem[:min(len(rest), bounceSize)]
	if b.lower.Submit(&b.op) {
		b.lower.loop.Again((*bounceStep)(b))
	}
}

// bounceStep is a read that has ended at once.
type bounceStep bounce

// Run implements evloop.Task.
func (s *bounceStep) Run() { (*bounce)(s).step() }

// step goes on after a read.
func (b *bounce) step() {
	asked := b.queue[0]
	if b.op.Err == nil {
		b.done += copy(asked.Data[b.done:], b.op.Data)
	}
	if b.op.Err == nil && b.done < len(asked.Data) {
		b.ask()
		return
	}
	b.pop()
}

// pop ends the first of the queue.
func (b *bounce) pop() {
	asked := b.queue[0]
	asked.Err = b.op.Err
	b.queue = slices.Delete(b.queue, 0, 1)
	if len(b.queue) > 0 {
		b.begin()
	}
	asked.Done(asked)
}

func (b *bounce) free() {
	if b.mem != nil {
		_ = unix.Munmap(b.mem) // it was mapped here
		b.mem = nil
	}
}
