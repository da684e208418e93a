package target

import (
	"log/slog"
	"time"
)

// rareLog passes one line a second and counts those that it holds back, so
// that a flood of events is no flood of lines. It belongs to one goroutine.
type rareLog struct {
	last time.Time
	held int
}

// Warn logs, or counts.
func (r *rareLog) Warn(l *slog.Logger, msg string, args ...any) {
	now := time.Now()
	if now.Sub(r.last) < time.Second {
		r.held++
		return
	}
	if r.held > 0 {
		args = append(args, "held_back", r.held)
	}
	r.last, r.held = now, 0
	l.Warn(msg, args...)
}
