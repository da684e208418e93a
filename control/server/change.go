package server

import (
	"log/slog"
	"strings"
)

// Change is what somebody changed, or was not allowed to.
type Change struct {
	What   string // operation and what it was given, without secrets
	By     Caller // who asked
	Err    error  // why nothing was changed; nil: it was
	Result string // what has come of it; may be empty
}

// Log writes the one line that each change gets, whatever way it came by.
func (c Change) Log(log *slog.Logger) {
	attrs := []any{"what", c.What, "by", c.By.String()}
	if c.Err != nil {
		log.Warn("change", append(attrs, "outcome", "refused", "reason", oneLine(c.Err.Error()))...)
		return
	}
	if c.Result != "" {
		attrs = append(attrs, "result", oneLine(c.Result))
	}
	log.Info("change", append(attrs, "outcome", "done")...)
}

func oneLine(text string) string { return clipped(strings.ReplaceAll(text, "\n", "; ")) }

// clipped bounds what a request can put into the log.
func clipped(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
