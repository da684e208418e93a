package main

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	slot   = 10 * time.Millisecond
	second = time.Second // of reservations and limits
)

// account counts what an initiator was answered, by time.
type account struct {
	began time.Time
	slots [120_000]atomic.Int32 // 20 minutes
}

func (a *account) at(t time.Time) int {
	return min(max(0, int(t.Sub(a.began)/slot)), len(a.slots)-1)
}

// answered counts a command.
func (a *account) answered() { a.slots[a.at(time.Now())].Add(1) }

// served is how many commands were answered in a time.
func (a *account) served(from time.Time, d time.Duration) (n int64) {
	first := a.at(from)
	for i := range int(d / slot) {
		n += int64(a.slots[min(first+i, len(a.slots)-1)].Load())
	}
	return n
}

// span is some of the time.
type span struct{ from, to time.Time }

// windows calls do with what was answered in each window of the span, and when that begins.
func (a *account) windows(in span, window time.Duration, do func(at time.Time, n int64)) {
	for at := in.from; !at.Add(window).After(in.to); at = at.Add(slot) {
		do(at, a.served(at, window))
	}
}

// most is the most that was answered in any window.
func (a *account) most(in []span, window time.Duration) (n int64) {
	for _, s := range in {
		a.windows(s, window, func(_ time.Time, served int64) { n = max(n, served) })
	}
	return n
}

// least is the least that was answered in any second, and when that began.
func (a *account) least(in []span) (n int64, at time.Time) {
	n = math.MaxInt64
	for _, s := range in {
		a.windows(s, second, func(from time.Time, served int64) {
			if served < n {
				n, at = served, from
			}
		})
	}
	return n, at
}

// met is how long it takes until in each second so much is answered.
func (a *account) met(in span, least int64) (after time.Duration) {
	a.windows(in, second, func(at time.Time, n int64) {
		if n < least {
			after = at.Add(slot).Sub(in.from)
		}
	})
	return after
}
