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
	tweaks tweaks
}

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

// cipher turns n bytes, here or on a worker.
func (j *job) cipher(n int) {
	if n <= inlineSize {
		j.Do()
		j.Run()
		return
	}
	j.lane.loop.Workers().Submit(j.lane.loop, j)
}

// Do implements evloop.Job.
func (j *job) Do() {
	l := j.lane
	first := l.number(j.op.Off + int64(j.done))
	if j.op.Kind == backstore.Read {
		j.keys.open(j.op.Data, first, l.store.unit, &j.tweaks)
		return
	}
	j.keys.seal(j.buffer, j.op.Data[j.done:][:len(j.buffer)], first, l.store.unit, &j.tweaks)
}

// Run implements evloop.Job: what follows Do.
func (j *job) Run() {
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
