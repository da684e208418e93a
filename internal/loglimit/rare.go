package loglimit

import (
	"context"
	"log/slog"
	"time"
)

// Rare passes a number of lines a second and counts those that it suppresses, so
// that a flood of events is no flood of lines. It belongs to one goroutine or event
// thread, or has a lock beside it.
type Rare struct {
	Most   int // lines a second
	since  time.Time
	passed int // since then

	suppressed int
}

// Log logs, or counts.
func (r *Rare) Log(l *slog.Logger, level slog.Level, msg string, args ...any) {
	now := time.Now()
	if now.Sub(r.since) >= time.Second {
		r.since, r.passed = now, 0
	}
	if r.passed >= r.Most {
		r.suppressed++
		return
	}
	if r.suppressed > 0 {
		args = append(args, "held_back", r.suppressed)
	}
	r.passed++
	r.suppressed = 0
	l.Log(context.Background(), level, msg, args...)
}
