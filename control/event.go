package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// EventsPath is where events are told as they happen (Server-Sent Events).
const EventsPath = "/v1/events"

// Event is something that has happened. Its text and fields are those of the line in the
// log.
type Event struct {
	ID     string            `json:"id" doc:"Number of the event. Who sends it as Last-Event-ID gets those after it."`
	Time   time.Time         `json:"time" doc:"When it was."`
	Kind   string            `json:"kind" doc:"What it is about, as docs/api.md lists it; lost: others were told too slowly, and are missing here; end: no more are told, for the reason in text."`
	Text   string            `json:"text" doc:"What has happened."`
	Fields map[string]string `json:"fields,omitempty" doc:"What it has happened to, as in the log."`
}

// Lost is the kind of an event that stands for others, which a slow reader has missed. End
// is that of the last one, if the server ends the stream and goes on itself.
const (
	Lost = "lost"
	End  = "end"
)

// Events reads events until ctx ends, the server does, or told returns an error: those of
// the kinds, or all. That the server tells nothing more (End) is an error. after is the ID of the last one that is known; empty: from the oldest
// that the server has. Unless it is to follow, it ends with the newest.
func (c *Client) Events(ctx context.Context, kinds []string, after string, follow bool, told func(Event) error) error {
	query := url.Values{"follow": {fmt.Sprint(follow)}}
	if len(kinds) > 0 {
		query.Set("kind", strings.Join(kinds, ","))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+EventsPath+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Last-Event-ID", after)
	return c.streamed(r, func(from io.Reader) error { return readEvents(from, told) })
}

func readEvents(from io.Reader, told func(Event) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return fmt.Errorf("events: %w", err)
		}
		if e.Kind == End {
			return fmt.Errorf("events are not told any more: %s", e.Text)
		}
		if err := told(e); err != nil {
			return err
		}
	}
	return lines.Err()
}
