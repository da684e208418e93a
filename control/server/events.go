package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
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
	end    context.Context // of the server
	open   atomic.Int32
}

// add adds the operation to an API.
func (f *feed) add(api huma.API) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[control.Event](), true, "Event")
	op := huma.Operation{OperationID: "get-events", Method: http.MethodGet, Path: control.EventsPath, Summary: "What happens, as it happens (Server-Sent Events)",
		Responses: map[string]*huma.Response{"200": {Description: "Each data field is an event.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: schema}}}}}
	huma.Register(api, op, func(_ context.Context, in *EventsRequest) (*huma.StreamResponse, error) {
		if f.stream == nil {
			return nil, huma.Error404NotFound("this server keeps no events")
		}
		for _, kind := range in.Kinds {
			if all := events.Kinds(); !slices.Contains(all, kind) {
				return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("kind: found %q, expected one of %s", kind, strings.Join(all, ", ")))
			}
		}
		if f.open.Add(1) > maxStreams {
			f.open.Add(-1)
			return nil, huma.Error503ServiceUnavailable(fmt.Sprintf("found %d readers of events, expected at most that", maxStreams))
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			defer f.open.Add(-1)
			r, w := humago.Unwrap(ctx)
			f.tell(w, r, in)
		}}, nil
	})
}

// tell sends events until the reader goes, does not take them in time, or the server ends.
func (f *feed) tell(w http.ResponseWriter, r *http.Request, in *EventsRequest) {
	working(r, true) // it keeps its place
	to := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = to.SetReadDeadline(time.Time{}) // all of the request has come
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	at := f.stream.Position(in.After)
	for {
		found, next, more := f.stream.From(at)
		at = next
		_ = to.SetWriteDeadline(time.Now().Add(eventTime)) // a connection that has no deadlines fails below
		for i := range found {
			if e := &found[i]; len(in.Kinds) > 0 && e.Kind != control.Lost && !slices.Contains(in.Kinds, e.Kind) {
				continue
			} else if err := send(w, e); err != nil {
				return
			}
		}
		if len(found) == 0 && in.Follow {
			fmt.Fprint(w, ":\n\n") //nolint:errcheck // Flush tells
		}
		if to.Flush() != nil || !in.Follow {
			return
		}
		select {
		case <-more:
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-f.end.Done():
			return
		}
	}
}

func send(w http.ResponseWriter, e *control.Event) error {
	text, err := json.Marshal(e)
	if err == nil {
		_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, text)
	}
	return err
}
