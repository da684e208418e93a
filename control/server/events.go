package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"lunar/control"
	"lunar/control/events"
)

const (
	maxStreams = 64 // readers of events at a time
	// eventTime is how long a reader may take for what it was sent.
	eventTime = 10 * time.Second
	// beatTime is how often something is sent, so that who has gone is noticed.
	beatTime = 15 * time.Second
)

// EventsRequest is what a reader of events wants. It is exported for the reflection of
// huma.
type EventsRequest struct {
	Kinds  []string `query:"kind" doc:"Only events of these kinds, with commas between."`
	Follow bool     `query:"follow" default:"true" doc:"Wait for more after the newest."`
	After  string   `header:"Last-Event-ID" doc:"Only events after this one."`
}

// feed tells readers of the stream.
type feed struct {
	stream *events.Stream
	seats  *seats
}

// add adds the operation to an API.
func (f *feed) add(api huma.API) {
	op := huma.Operation{OperationID: "get-events", Method: http.MethodGet, Path: control.EventsPath, Summary: "What happens, as it happens (Server-Sent Events)",
		Responses: documents[control.Event](api, "text/event-stream", "Each data field is an event.")}
	huma.Register(api, op, func(ctx context.Context, in *EventsRequest) (*huma.StreamResponse, error) {
		if f.stream == nil {
			return nil, huma.Error404NotFound("this server keeps no events")
		}
		for _, kind := range in.Kinds {
			if all := events.Kinds(); !slices.Contains(all, kind) {
				return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("kind: found %q, expected one of %s", kind, strings.Join(all, ", ")))
			}
		}
		place := f.seats.take(callerOf(ctx))
		if place == nil {
			return nil, huma.Error503ServiceUnavailable(fmt.Sprintf("found %d readers of events, expected at most that, of whom each has a share", maxStreams))
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			defer place.leave()
			r, w := humago.Unwrap(ctx)
			f.tell(w, r, in, place)
		}}, nil
	})
}

// tell sends events until the reader goes, does not take them in time, may not read them
// any more or loses its place, or the server ends.
func (f *feed) tell(w http.ResponseWriter, r *http.Request, in *EventsRequest, place *seat) {
	working(r, true) // it keeps its place
	to := &eventWriter{to: w, control: http.NewResponseController(w), kinds: in.Kinds}
	place.sends(to.control)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = to.control.SetReadDeadline(time.Time{}) // all of the request has come
	look := time.NewTicker(standingTime)
	defer look.Stop()
	at := f.stream.Position(in.After)
	for {
		found, next, more := f.stream.From(at)
		at = next
		over := place.over(r.Context())
		if over != "" { // before anything is told
			found = []control.Event{{Time: time.Now(), Kind: control.End, Text: over}}
		}
		if to.send(found) != nil || over != "" || !in.Follow {
			return
		}
		select {
		case <-more:
		case <-look.C:
		case <-place.lost:
		case <-r.Context().Done():
			return
		case <-leavingOf(r.Context()):
			return
		}
	}
}

// eventWriter sends events to a reader that has to take them in time.
type eventWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	kinds   []string // that it wants; none: all
	sent    time.Time
}

// send sends those that the reader wants, or a sign of life, if one is due.
func (w *eventWriter) send(found []control.Event) error {
	begin := func() {
		w.sent = time.Now()
		_ = w.control.SetWriteDeadline(w.sent.Add(eventTime)) // a connection that has no deadlines fails below
	}
	if time.Since(w.sent) >= beatTime {
		begin()
		fmt.Fprint(w.to, ":\n\n") //nolint:errcheck // Flush tells
	}
	for i := range found {
		e := &found[i]
		if len(w.kinds) > 0 && e.Kind != control.Lost && e.Kind != control.End && !slices.Contains(w.kinds, e.Kind) {
			continue
		}
		begin()
		text, err := json.Marshal(e)
		if err == nil {
			_, err = fmt.Fprintf(w.to, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, text)
		}
		if err != nil {
			return err
		}
	}
	return w.control.Flush()
}
