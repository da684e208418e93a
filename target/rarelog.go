package target

import (
	"context"
	"log/slog"
	"time"
)

// rareLog passes a number of lines a second and counts those that it holds
// back, so that a flood of events is no flood of lines. It belongs to one
// goroutine or event thread, or has a lock beside it.
type rareLog struct {
	most   int // lines a second
	since  time.Time
	passed int // since then
	held   int
}

// log logs, or counts.
func (r *rareLog) log(l *slog.Logger, level slog.Level, msg string, args ...any) {
	now := time.Now()
	if now.Sub(r.since) >= time.Second {
		r.since, r.passed = now, 0
	}
	if r.passed >= r.most {
		r.held++
		return
	}
	if r.held > 0 {
		args = append(args, "held_back", r.held)
	}
	r.passed++
	r.held = 0
	l.Log(context.Background(), level, msg, args...)
}
