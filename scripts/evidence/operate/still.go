package main

import (
	"context"
	"time"

	"lunar/internal/evloop"
	"lunar/scripts/evidence/canary"
)

// stood is how long this program must not have run at all to say that the machine stood
// still: virtual machines are stopped for a snapshot, and all of their processes with them.
// Who only waits for a processor has it sooner.
const stood = 5 * time.Second

// stillness is when the machine stood still.
type stillness struct{ spans []canary.Span }

// watch notes it until ctx ends.
func (s *stillness) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := evloop.Monotonic()
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		now := evloop.Monotonic()
		if one := (canary.Span{From: last, To: now}); one.Took() >= stood {
			s.spans = append(s.spans, one)
		}
		last = now
	}
}

// without are the spans in which the machine did not stand still. Watch has ended.
func (s *stillness) without(all []canary.Span) (out []canary.Span) {
	for _, one := range all {
		meets := false
		for _, still := range s.spans {
			meets = meets || one.From < still.To && still.From < one.To
		}
		if !meets {
			out = append(out, one)
		}
	}
	return out
}

// total is how long it stood still.
func (s *stillness) total() (d time.Duration) {
	for _, one := range s.spans {
		d += one.Took()
	}
	return d
}
