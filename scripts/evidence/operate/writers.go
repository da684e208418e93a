package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"lunar/control"
	"lunar/internal/evloop"
	"lunar/scripts/evidence/canary"
)

// writers make changes until none are left to make.
type writers struct {
	make   func(ctx context.Context, api *control.Client, n int) (volume string, err error)
	mortal bool   // the server may end amid them
	enough int    // after so many it is
	killed func() // killed

	killing sync.WaitGroup

	mu       sync.Mutex
	left     int
	made     int
	stale    int
	acked    map[string]int64 // by volume
	inFlight map[string]int64 // of which nobody knows, by volume
	spans    []canary.Span    // of changes that were made
	errs     error
}

// run has n writers at work, and says how long that took.
func (w *writers) run(ctx context.Context, socket string, n int) (time.Duration, error) {
	w.acked, w.inFlight = map[string]int64{}, map[string]int64{}
	began, all := time.Now(), w.left
	var running sync.WaitGroup
	for range n {
		running.Go(func() { w.write(ctx, socket, all) })
	}
	running.Wait()
	w.killing.Wait()
	return time.Since(began), w.errs
}

// next is false once there are no more.
func (w *writers) next() (left int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	return w.left, w.left >= 0 && w.errs == nil
}

func (w *writers) write(ctx context.Context, socket string, all int) {
	api, err := control.Dial(socket)
	if err != nil {
		w.mu.Lock()
		w.errs = errors.Join(w.errs, err)
		w.mu.Unlock()
		return
	}
	defer api.Close()
	for {
		left, ok := w.next()
		if !ok {
			return
		}
		for done := false; !done; {
			began := evloop.Monotonic()
			volume, err := w.make(ctx, api, all-left-1)
			if done, ok = w.ended(volume, canary.Span{From: began, To: evloop.Monotonic()}, err); !ok {
				return
			}
		}
	}
}

// ended notes how a change ended; done is false if it is to be made again, and ok if it is
// of no use to go on.
func (w *writers) ended(volume string, took canary.Span, err error) (done, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refusal *control.Refusal
	switch {
	case err == nil:
	case errors.As(err, &refusal) && refusal.Stale:
		w.stale++
		return false, true
	case w.mortal && !errors.As(err, &refusal):
		w.inFlight[volume]++
		return false, false
	default:
		w.errs = errors.Join(w.errs, err)
		return false, false
	}
	w.acked[volume]++
	w.spans = append(w.spans, took)
	if w.made++; w.made == w.enough {
		w.killing.Go(w.killed)
	}
	return true, true
}
