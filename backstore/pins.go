package backstore

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pinSpan is the part of a store's memory that is lent or changed at a time, in
// bytes. A smaller one lets more writes pass beside reads, and costs long transfers
// more counting.
const pinSpan = 16 << 10

// pins keep changes of memory away from what is lent of it: a change waits for the
// loans of its spans, and nothing more is lent of them meanwhile. So a change waits
// only for what was lent before it. Changes do not wait for each other.
//
// A word counts the loans of a span in its lower half and the changes, with those that
// wait, in its upper half. Words take memory only where they were used.
type pins struct {
	memory []byte
	words  []atomic.Uint32
	mu     struct {
		sync.Mutex
		waiting map[int64][]func() // by span, of changes
	}
}

const (
	oneLoan   = 1
	oneChange = 1 << 16
	allLoans  = oneChange - 1
)

func (p *pins) open(bytes int64) (err error) {
	n := (bytes + pinSpan - 1) / pinSpan
	if p.memory, err = reserve(n * 4); err != nil {
		return err
	}
	p.words = unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&p.memory[0])), n)
	p.mu.waiting = make(map[int64][]func())
	return nil
}

func (p *pins) close() error { return unix.Munmap(p.memory) }

// spansOf returns the spans [first, end) that bytes [from, to) touch.
func spansOf(from, to int64) (first, end int64) {
	return from / pinSpan, (to + pinSpan - 1) / pinSpan
}

// lend lends a span, unless it is being changed.
func (p *pins) lend(span int64) bool {
	w := &p.words[span]
	for {
		old := w.Load()
		if old >= oneChange || old == allLoans {
			return false
		}
		if w.CompareAndSwap(old, old+oneLoan) {
			return true
		}
	}
}

// giveBack ends a loan of a span.
func (p *pins) giveBack(span int64) {
	if left := p.words[span].Add(^uint32(oneLoan - 1)); left&allLoans == 0 && left != 0 {
		p.wake(span)
	}
}

// wake tells the changes that wait for a span.
func (p *pins) wake(span int64) {
	p.mu.Lock()
	waiting := p.mu.waiting[span]
	delete(p.mu.waiting, span)
	p.mu.Unlock()
	for _, returned := range waiting {
		returned()
	}
}

// change begins a change of [first, end) if nothing of that is lent.
func (p *pins) change(first, end int64) bool {
	for i := first; i < end; i++ {
		if p.words[i].Add(oneChange)&allLoans != 0 {
			p.changed(first, i+1)
			return false
		}
	}
	return true
}

// await begins a change of [first, end), and tells how many of its spans are lent:
// returned is called as often, by any thread, when one is not any more.
func (p *pins) await(first, end int64, returned func()) (lent int) {
	for i := first; i < end; i++ {
		w := &p.words[i]
		if w.Add(oneChange)&allLoans == 0 {
			continue
		}
		p.mu.Lock()
		if w.Load()&allLoans != 0 { // who gives the last one back looks for those who wait
			p.mu.waiting[i] = append(p.mu.waiting[i], returned)
			lent++
		}
		p.mu.Unlock()
	}
	return lent
}

// changed ends a change.
func (p *pins) changed(first, end int64) {
	for i := first; i < end; i++ {
		p.words[i].Add(^uint32(oneChange - 1))
	}
}
