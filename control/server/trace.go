package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"lunar/control"
)

const (
	// traceLook is how often a trace is read: what comes faster than it can hold between
	// is missing.
	traceLook = 10 * time.Millisecond
	// traceLines and traceRounds bound what is sent before the bounds of the trace are
	// looked at again: more than a trace holds.
	traceLines, traceRounds = 1024, 8
	maxTraces               = 8 // at a time, as the target has them
)

// Trace is of the PDUs of a session. One goroutine uses it.
type Trace interface {
	// Lines returns at most so many PDUs that were not read yet, and their connections.
	Lines(most int) []control.TraceLine
	// Ended is closed when the session has ended; what it had before can be read still.
	Ended() <-chan struct{}
	// Missing is how many PDUs are missing behind the last one that was read.
	Missing() int
	// Close ends it.
	Close()
}

// TraceRequest says what is to be traced. It is exported for the reflection of huma.
type TraceRequest struct {
	Session int `path:"id" minimum:"1" maximum:"65535" doc:"TSIH of the session."`
	Seconds int `query:"seconds" default:"10" minimum:"1" maximum:"3600" doc:"After which the trace ends."`
	PDUs    int `query:"pdus" default:"10000" minimum:"1" maximum:"1000000" doc:"After how many it ends."`
}

// tracing tells PDUs of sessions.
type tracing struct {
	source Source
	seats  *seats

	mu    sync.Mutex
	under map[int]*seat // by session, who has it traced
}

// begin begins the trace of a session, which has one at a time: that of an operator ends
// for an administrator.
func (t *tracing) begin(session int, by Caller, place *seat) (Trace, control.TraceStart, error) {
	t.mu.Lock()
	other := t.under[session]
	t.mu.Unlock()
	if other != nil {
		other.yields(by)
	}
	trace, start, err := t.source.Trace(uint16(session))
	if err == nil {
		t.mu.Lock()
		t.under[session] = place
		t.mu.Unlock()
	}
	return trace, start, err
}

// end ends the trace of a session.
func (t *tracing) end(session int, trace Trace, place *seat) {
	t.mu.Lock()
	if t.under[session] == place {
		delete(t.under, session)
	}
	t.mu.Unlock()
	trace.Close()
	place.leave()
}

// add adds the operation to an API.
func (t *tracing) add(api huma.API) {
	op := huma.Operation{OperationID: "post-trace", Method: http.MethodPost, Path: control.TracePath, Summary: "The PDUs of a session as they come and go, without their data (a JSON document in each line)",
		Responses: documents[control.TraceLine](api, "application/x-ndjson", "Each line is a document.")}
	huma.Register(api, op, func(ctx context.Context, in *TraceRequest) (*huma.StreamResponse, error) {
		place := t.seats.take(callerOf(ctx))
		if place == nil {
			return nil, refusal(&control.Refusal{What: fmt.Sprintf("session %d is not traced", in.Session), State: true,
				Reasons: []control.Reason{{Text: fmt.Sprintf("found %d traces, expected at most that, of which each has a share", maxTraces)}}})
		}
		trace, start, err := t.begin(in.Session, callerOf(ctx), place)
		if err != nil {
			place.leave()
			return nil, refusal(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			defer t.end(in.Session, trace, place)
			r, w := humago.Unwrap(ctx)
			to := &traceWriter{to: w, control: http.NewResponseController(w)}
			place.sends(to.control)
			end := to.tell(r, trace, start, in, place)
			noteResult(ctx.Context(), traced{end})
		}}, nil
	})
}

// traced is for the audit.
type traced struct{ control.TraceEnd }

// Outcome is for the log.
func (t traced) Outcome() string { return fmt.Sprintf("%d PDUs: %s", t.PDUs, t.Reason) }

// traceWriter sends lines to a reader that has to take them in time.
type traceWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	sent    time.Time
}

// send sends lines; none: a sign of life, if one is due.
func (w *traceWriter) send(lines ...control.TraceLine) error {
	if len(lines) == 0 && time.Since(w.sent) < beatTime {
		return nil
	}
	w.sent = time.Now()
	_ = w.control.SetWriteDeadline(w.sent.Add(eventTime)) // a connection that has no deadlines fails below
	if len(lines) == 0 {
		fmt.Fprintln(w.to) //nolint:errcheck // Flush tells
	}
	for i := range lines {
		text, err := json.Marshal(&lines[i])
		if err == nil {
			_, err = w.to.Write(append(text, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return w.control.Flush()
}

// tell sends a trace until its bounds, the end of the session or of the server, or until
// the reader goes, does not take it in time, may not have it any more or loses its place.
func (w *traceWriter) tell(r *http.Request, trace Trace, start control.TraceStart, in *TraceRequest, place *seat) (end control.TraceEnd) {
	working(r, true) // it keeps its place
	w.to.Header().Set("Content-Type", "application/x-ndjson")
	w.to.Header().Set("Cache-Control", "no-store")
	_ = w.control.SetReadDeadline(time.Time{}) // all of the request has come
	look, late, judge := time.NewTicker(traceLook), time.NewTimer(time.Duration(in.Seconds)*time.Second), time.NewTicker(standingTime)
	defer look.Stop()
	defer late.Stop()
	defer judge.Stop()
	err := w.send(control.TraceLine{Start: &start})
	for err == nil && end.Reason == "" {
		over := "" // before anything more is told
		select {
		case <-look.C:
		case <-late.C:
			end.Reason = fmt.Sprintf("%d s are over", in.Seconds)
		case <-trace.Ended():
			end.Reason = "the session has ended"
		case <-judge.C:
			over = place.over(r.Context())
		case <-place.lost:
			over = place.over(r.Context())
		case <-leavingOf(r.Context()):
			end.Reason = "the server stops, or has left this port"
		case <-r.Context().Done():
			end.Reason = "the client has gone"
			return end
		}
		if over != "" {
			end.Reason = over
			break
		}
		last := end.Reason != ""
		err = w.pass(trace, in.PDUs, &end)
		if end.PDUs == in.PDUs {
			end.Reason = fmt.Sprintf("%d PDUs were told", end.PDUs)
		} else if last {
			end.Missing += trace.Missing()
		}
	}
	if err == nil {
		err = w.send(control.TraceLine{End: &end})
	}
	if err != nil {
		end.Reason = "the client does not take it: " + err.Error()
	}
	return end
}

// pass sends what there is of a trace, up to so many PDUs altogether, and counts it.
func (w *traceWriter) pass(trace Trace, most int, sum *control.TraceEnd) error {
	for range traceRounds {
		lines := trace.Lines(min(traceLines, most-sum.PDUs))
		for i := range lines {
			if p := lines[i].PDU; p != nil {
				sum.PDUs++
				sum.Missing += p.MissingBefore
			}
			if r := lines[i].Relayed; r != nil {
				sum.Missing += r.MissingBefore
			}
		}
		if err := w.send(lines...); err != nil || len(lines) == 0 {
			return err
		}
	}
	return nil
}

// endless reports whether the answer to a request is made while it is sent.
func endless(r *http.Request) bool {
	trace, _ := path.Match(strings.Replace(control.TracePath, "{id}", "*", 1), r.URL.Path)
	return trace || r.URL.Path == control.EventsPath
}
