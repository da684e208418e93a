package events

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"lunar/control"
)

// Tee is a log's handler that publishes the lines that are events, also those below the
// level that the log has. It hands all lines on to next.
func Tee(next slog.Handler, to *Stream) slog.Handler { return &tee{next: next, to: to} }

type tee struct {
	next  slog.Handler
	to    *Stream
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (t *tee) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t *tee) Handle(ctx context.Context, r slog.Record) error {
	if kind, ok := kinds[r.Message]; ok {
		t.to.Publish(t.event(kind, r))
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

func (t *tee) event(kind string, r slog.Record) control.Event {
	e := control.Event{Time: r.Time, Kind: kind, Text: r.Message, Fields: map[string]string{}}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	for _, a := range t.attrs {
		e.Fields[a.Key] = a.Value.Resolve().String()
	}
	r.Attrs(func(a slog.Attr) bool {
		e.Fields[a.Key] = a.Value.Resolve().String()
		return true
	})
	return e
}

// WithAttrs implements slog.Handler.
func (t *tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tee{t.next.WithAttrs(attrs), t.to, append(slices.Clip(t.attrs), attrs...)}
}

// WithGroup implements slog.Handler.
func (t *tee) WithGroup(name string) slog.Handler { return &tee{t.next.WithGroup(name), t.to, t.attrs} }
