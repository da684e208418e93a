package daemon

import (
	"context"
	"io"
	"log/slog"

	"lunar/conf"
	"lunar/internal/systemd"
)

// set puts a configuration into force.
func (o *output) set(l conf.Log) {
	o.level.Set(levelOf(l))
	o.json.Store(l.Format == "json")
}

// newLogger writes lines of text or JSON. Those for the journal have priorities in place
// of times.
func newLogger(to io.Writer, journal bool, l conf.Log) (*slog.Logger, *output) {
	o := &output{}
	o.set(l)
	options := &slog.HandlerOptions{Level: &o.level}
	if journal {
		to, options.ReplaceAttr = systemd.Priorities(to), withoutTime
	}
	return slog.New(&lines{o, slog.NewTextHandler(to, options), slog.NewJSONHandler(to, options)}), o
}

// withoutTime leaves the time of a record out.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// lines writes each record in the form that is in force.
type lines struct {
	*output
	text, object slog.Handler
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(ctx context.Context, level slog.Level) bool {
	return l.text.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	if l.json.Load() {
		return l.object.Handle(ctx, r)
	}
	return l.text.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lines{l.output, l.text.WithAttrs(attrs), l.object.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(name string) slog.Handler {
	return &lines{l.output, l.text.WithGroup(name), l.object.WithGroup(name)}
}

func levelOf(l conf.Log) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}
