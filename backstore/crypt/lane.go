package crypt

import (
	"fmt"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// inlineSize is what the event thread enciphers by itself, in bytes: some 15 us. More
// goes to the workers, which are many.
const inlineSize = smallSize

// lane is an event thread's access.
type lane struct {
	store   *Store
	loop    *evloop.Loop
	inner   backstore.Lane
	counter quiesce.Counter
	scratch scratch
	tweaks  *tweaks // of what the event thread does
	free    *job
	running int
}

// TryNow implements backstore.Lane. A write needs memory of its own, and is left to
// Submit.
func (l *lane) TryNow(op *backstore.Op) bool {
	switch op.Kind {
	case backstore.Read:
		k := l.admit(op)
		return k == nil || len(op.Data) <= inlineSize && l.readNow(op, k)
	case backstore.Write, backstore.Erase:
		return false
	}
	return l.inner.TryNow(op)
}

// admit checks op and returns the keys for all of it; nil: it has ended.
func (l *lane) admit(op *backstore.Op) *keys {
	info, k := l.store.Info(), l.store.keys.Load()
	if op.Err = backstore.Check(op, &info); op.Err == nil {
		op.Err = k.err
	}
	if op.Err != nil || op.Length() == 0 {
		return nil
	}
	return k
}

func (l *lane) readNow(op *backstore.Op, k *keys) bool {
	if !l.inner.TryNow(op) {
		return false
	}
	if op.Err == nil {
		k.open(op.Data, l.number(op.Off), l.store.unit, l.tweaks)
	}
	return true
}

// number is that of the data unit at off.
func (l *lane) number(off int64) uint64 { return uint64(off / int64(l.store.unit)) }

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	switch op.Kind {
	case backstore.Read, backstore.Write:
	case backstore.Erase:
		return l.erase(op)
	default:
		return l.inner.Submit(op)
	}
	k := l.admit(op)
	if k == nil {
		return true
	}
	j := l.job(op, k)
	j.inside = true
	if op.Kind == backstore.Read {
		j.read()
	} else {
		j.write()
	}
	j.inside = false
	if !j.over {
		return false
	}
	l.release(j)
	return true
}

// erase has a goroutine replace the key: the event threads must run meanwhile, and
// the workers may all be needed for what has to end first.
func (l *lane) erase(op *backstore.Op) bool {
	info := l.store.Info()
	if op.Err = backstore.Check(op, &info); op.Err != nil {
		return true
	}
	l.running++
	go func() {
		err := l.store.rekey()
		l.loop.Post(evloop.Func(func() {
			l.running--
			op.Err = err
			op.Done(op)
		}))
	}()
	return false
}

// Close implements backstore.Lane.
func (l *lane) Close() {
	if l.running > 0 {
		panic(fmt.Sprintf("crypt: lane of %s closed with %d ops running", l.store.describe, l.running))
	}
	l.inner.Close()
	l.store.counters.Remove(&l.counter)
	l.scratch.close()
}

// begin starts an op below and reports whether it has ended.
func (l *lane) begin(op *backstore.Op) bool { return l.inner.TryNow(op) || l.inner.Submit(op) }

// job returns one for op.
func (l *lane) job(op *backstore.Op, k *keys) *job {
	j := l.free
	if j == nil {
		j = &job{lane: l}
		j.part.Done = j.ended
	} else {
		l.free = j.next
	}
	l.running++
	j.era = l.counter.Enter()
	j.op, j.next, j.keys = op, nil, k
	j.done, j.over = 0, false
	return j
}

func (l *lane) release(j *job) {
	l.running--
	l.counter.Exit(j.era)
	j.op, j.keys, j.part.Data = nil, nil, nil
	j.next, l.free = l.free, j
}
