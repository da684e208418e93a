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
	mem   []byte
	queue []*piece // the first has the buffer
	done  int      // bytes
	op    backstore.Op
}

// add reads p.around, now or after others.
func (b *bounce) add(p *piece) {
	b.queue = append(b.queue, p)
	if len(b.queue) == 1 {
		b.begin()
	}
}

// begin serves the first of the queue.
func (b *bounce) begin() {
	b.done = 0
	if b.mem == nil {
		mem, err := arena.Map(bounceSize, b.queue[0].t.lane.loop.Memory())
		if err != nil {
			b.op.Err = err
			b.queue[0].t.lane.loop.Again(b)
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
	p := b.queue[0]
	rest := p.around.Data[b.done:]
	b.op.Kind, b.op.Off, b.op.Data = backstore.Read, p.around.Off+int64(b.done), b.mem[:min(len(rest), bounceSize)]
	if p.t.lane.lower.Submit(&b.op) {
		p.t.lane.loop.Again((*bounceStep)(b))
	}
}

// bounceStep is a read that has ended at once.
type bounceStep bounce

// Run implements evloop.Task.
func (s *bounceStep) Run() { (*bounce)(s).step() }

// step goes on after a read.
func (b *bounce) step() {
	p := b.queue[0]
	if b.op.Err == nil {
		b.done += copy(p.around.Data[b.done:], b.op.Data)
	}
	if b.op.Err == nil && b.done < len(p.around.Data) {
		b.ask()
		return
	}
	b.pop()
}

// pop ends the first of the queue.
func (b *bounce) pop() {
	p := b.queue[0]
	p.around.Err = b.op.Err
	b.queue = slices.Delete(b.queue, 0, 1)
	if len(b.queue) > 0 {
		b.begin()
	}
	p.passedBy(&p.around)
}

func (b *bounce) free() {
	if b.mem != nil {
		_ = unix.Munmap(b.mem) // it was mapped here
		b.mem = nil
	}
}
