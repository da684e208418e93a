package crypt

import (
	"lunar/backstore"
	"lunar/internal/quiesce"
)

// job is a Read or Write under way. A read goes into the caller's memory, which
// nobody looks at before its end, and is deciphered there; a write is enciphered into
// scratch memory, and goes down in pieces of at most largeSize.
type job struct {
	lane   *lane
	op     *backstore.Op
	keys   *keys // all of it is enciphered with
	era    quiesce.Era
	part   backstore.Op // below
	done   int          // bytes of op
	buffer []byte       // scratch memory of a piece
	next   *job         // that waits, or is free
	inside bool         // Submit has not returned
	over   bool         // and the op has ended

	shares  []*share // made when first needed
	pending int      // of them that workers have
}

// share is a part of a job that one worker turns, so that a large one takes several
// processors.
type share struct {
	job    *job
	at, n  int // bytes of the piece
	tweaks tweaks
}

// shareSize bounds it, in bytes.
const shareSize = 64 << 10

// read fetches the cipher text.
func (j *job) read() {
	p := &j.part
	p.Kind, p.FUA, p.Atomic, p.Off, p.Data = backstore.Read, false, false, j.op.Off, j.op.Data
	if j.lane.begin(p) {
		j.fetched()
	}
}

// ended is part.Done.
func (j *job) ended(*backstore.Op) {
	if j.op.Kind == backstore.Read {
		j.fetched()
	} else {
		j.stored()
	}
}

func (j *job) fetched() {
	j.op.Hit = j.part.Hit
	if j.part.Err != nil {
		j.finish(j.part.Err)
		return
	}
	j.cipher(len(j.op.Data))
}

// write takes memory for the next piece, and goes on when it has some.
func (j *job) write() {
	n := min(len(j.op.Data)-j.done, largeSize)
	b, err := j.lane.scratch.take(n, j)
	switch {
	case err != nil:
		j.finish(err)
	case b != nil:
		j.buffer = b
		j.cipher(n)
	}
}

// waited is a job that has memory after it had to wait.
type waited job

// Run implements evloop.Task.
func (w *waited) Run() {
	j := (*job)(w)
	n := min(len(j.op.Data)-j.done, largeSize)
	j.buffer = j.buffer[:n]
	j.cipher(n)
}

// cipher turns n bytes, here or on workers.
func (j *job) cipher(n int) {
	if n <= inlineSize {
		j.turn(0, n, j.lane.tweaks)
		j.turned()
		return
	}
	for j.pending = 0; n > 0; j.pending++ {
		if j.pending == len(j.shares) {
			j.shares = append(j.shares, &share{job: j})
		}
		s := j.shares[j.pending]
		s.at, s.n = j.pending*shareSize, min(n, shareSize)
		n -= s.n
	}
	for _, s := range j.shares[:j.pending] {
		j.lane.loop.Workers().Submit(j.lane.loop, s)
	}
}

// turn enciphers or deciphers n bytes of the piece.
func (j *job) turn(at, n int, t *tweaks) {
	unit, text := j.lane.store.unit, j.op.Data[j.done+at:][:n]
	first := j.lane.number(j.op.Off + int64(j.done+at))
	if j.op.Kind == backstore.Read {
		j.keys.open(text, first, unit, t)
	} else {
		j.keys.seal(j.buffer[at:][:n], text, first, unit, t)
	}
}

// Do implements evloop.Job.
func (s *share) Do() { s.job.turn(s.at, s.n, &s.tweaks) }

// Run implements evloop.Job.
func (s *share) Run() {
	if s.job.pending--; s.job.pending == 0 {
		s.job.turned()
	}
}

// turned follows when all of the piece is turned.
func (j *job) turned() {
	if j.op.Kind == backstore.Read {
		j.finish(nil)
		return
	}
	p := &j.part
	p.Kind, p.FUA, p.Atomic, p.Off, p.Data = backstore.Write, j.op.FUA, j.op.Atomic, j.op.Off+int64(j.done), j.buffer
	if j.lane.begin(p) {
		j.stored()
	}
}

// stored follows a piece.
func (j *job) stored() {
	n, err := len(j.buffer), j.part.Err
	if w := j.lane.scratch.give(j.buffer); w != nil {
		j.lane.loop.Post((*waited)(w))
	}
	j.buffer = nil
	if j.done += n; err != nil || j.done == len(j.op.Data) {
		j.finish(err)
		return
	}
	j.write()
}

// finish ends the op.
func (j *job) finish(err error) {
	op, l := j.op, j.lane
	op.Err = err
	if j.inside {
		j.over = true
		return
	}
	l.release(j)
	op.Done(op)
}
