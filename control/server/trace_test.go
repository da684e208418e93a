package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/eventually"
)

// recording is a Trace that tells what it is given.
type recording struct {
	lines  chan control.TraceLine
	ended  chan struct{}
	closed atomic.Int32
}

func newRecording(lines ...control.TraceLine) *recording {
	r := &recording{lines: make(chan control.TraceLine, 1<<14), ended: make(chan struct{})}
	for _, l := range lines {
		r.lines <- l
	}
	return r
}

func (r *recording) Lines(most int) (lines []control.TraceLine) {
	for range most {
		select {
		case l := <-r.lines:
			lines = append(lines, l)
		default:
			return lines
		}
	}
	return lines
}

func (r *recording) Ended() <-chan struct{} { return r.ended }
func (r *recording) Missing() int           { return 3 }
func (r *recording) Close()                 { r.closed.Add(1) }

// Trace implements Source: session 1 ends at once.
func (f fixed) Trace(session uint16) (Trace, control.TraceStart, error) {
	if session != 1 {
		return nil, control.TraceStart{}, &control.Refusal{What: "session is not traced", Missing: true}
	}
	r := newRecording()
	close(r.ended)
	return r, control.TraceStart{Session: 1}, nil
}

// traceSource is a Source of one Trace.
type traceSource struct {
	fixed
	trace *recording
}

func (s traceSource) Trace(session uint16) (Trace, control.TraceStart, error) {
	return s.trace, control.TraceStart{Session: int(session), Transport: "tcp"}, nil
}

func pdu(missing int) control.TraceLine {
	return control.TraceLine{PDU: &control.TracedPDU{Direction: control.TraceSent, MissingBefore: missing}}
}

// TestTrace: a trace is told as it comes, with a last line that says why it ended, and is
// closed: at the end of the session, with all that it had, after so many PDUs, in time,
// with the server, and when its reader goes.
func TestTrace(t *testing.T) {
	ask := func(seconds, pdus int, r *recording, during func(n int, cancel func(), s *Server) error) (end *control.TraceEnd, told int, err error) {
		socket := filepath.Join(t.TempDir(), control.SocketName)
		s := start(t, Config{Socket: socket, Source: traceSource{fixed(sample()), r}})
		api, err := control.Dial(socket)
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = api.Trace(ctx, 7, seconds, pdus, func(l *control.TraceLine) error {
			end = l.End
			if l.Start != nil && l.Start.Session != 7 {
				t.Errorf("found %+v", l.Start)
			}
			if l.PDU != nil {
				told++
			}
			if during != nil {
				return during(told, cancel, s)
			}
			return nil
		})
		eventually.Holds(t, "the trace is closed", func() bool { return r.closed.Load() == 1 })
		return end, told, err
	}
	over := newRecording(control.TraceLine{Connection: &control.TraceConnection{CID: 1}}, pdu(0), pdu(2))
	for range 3000 {
		over.lines <- pdu(0)
	}
	close(over.ended)
	if end, told, err := ask(60, 0, over, nil); err != nil || told != 3002 || *end != (control.TraceEnd{Reason: "the session has ended", PDUs: 3002, Missing: 5}) {
		t.Errorf("found %+v, %d PDUs, %v", end, told, err)
	}
	if end, told, err := ask(60, 2, newRecording(pdu(1), pdu(0), pdu(0)), nil); err != nil || told != 2 || *end != (control.TraceEnd{Reason: "2 PDUs were told", PDUs: 2, Missing: 1}) {
		t.Errorf("found %+v, %d PDUs, %v", end, told, err)
	}
	if end, told, err := ask(1, 0, newRecording(pdu(0)), nil); err != nil || told != 1 || end.Reason != "1 s are over" {
		t.Errorf("found %+v, %d PDUs, %v", end, told, err)
	}
	end, _, err := ask(60, 0, newRecording(pdu(0)), func(n int, _ func(), s *Server) error {
		if n == 1 {
			s.end()
		}
		return nil
	})
	if err != nil || end == nil || end.Reason != "the server stops, or has left this port" {
		t.Errorf("found %+v, %v", end, err)
	}
	_, _, err = ask(60, 0, newRecording(pdu(0)), func(n int, cancel func(), _ *Server) error {
		if n == 1 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("found %v", err)
	}
}

// TestTraceIsRefused: what is wrong is said before anything is told.
func TestTraceIsRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), control.SocketName)
	start(t, Config{Socket: socket, Source: fixed(sample())})
	api, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	for _, q := range []struct{ session, seconds, pdus int }{{2, 0, 0}, {1, -1, 0}, {1, control.MaxTraceSeconds + 1, 0}, {1, 0, control.MaxTracePDUs + 1}, {70_000, 0, 0}} {
		err := api.Trace(t.Context(), q.session, q.seconds, q.pdus, func(*control.TraceLine) error { return nil })
		var r *control.Refusal
		if !errors.As(err, &r) || r.Missing != (q.session == 2) {
			t.Errorf("%+v: found %v", q, err)
		}
	}
	if err := api.Trace(t.Context(), 1, 0, 0, func(*control.TraceLine) error { return nil }); err != nil {
		t.Error(err)
	}
}

// singleSource traces a session once at a time, as the target does.
type singleSource struct {
	fixed
	mu   *sync.Mutex
	last *recording
}

func (s *singleSource) Trace(session uint16) (Trace, control.TraceStart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.closed.Load() == 0 {
		return nil, control.TraceStart{}, &control.Refusal{What: "session 7 is not traced", State: true}
	}
	s.last = newRecording(pdu(0))
	return s.last, control.TraceStart{Session: int(session), Transport: "tcp"}, nil
}

// TestTraceOfOperatorYields: an operator who traces a session is in the way of other
// operators, and not of an administrator.
func TestTraceOfOperatorYields(t *testing.T) {
	r := serveRemoteOf(t, Config{Source: &singleSource{fixed: fixed(sample()), mu: new(sync.Mutex)}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type ended struct {
		reason string
		err    error
	}
	trace := func(role control.Role) (told chan bool, end chan ended) {
		told, end = make(chan bool, 1), make(chan ended, 1)
		api := r.dial(t, role)
		go func() {
			var e ended
			e.err = api.Trace(ctx, 7, 60, 0, func(l *control.TraceLine) error {
				if l.PDU != nil {
					told <- true
				}
				if l.End != nil {
					e.reason = l.End.Reason
				}
				return nil
			})
			if e.err != nil {
				told <- false
			}
			end <- e
		}()
		return told, end
	}
	first, firstEnd := trace(control.Operate)
	if !<-first {
		t.Fatal((<-firstEnd).err)
	}
	if other, _ := trace(control.Operate); <-other {
		t.Error("two operators trace a session at a time")
	}
	if admin, end := trace(control.Admin); !<-admin {
		t.Fatal((<-end).err)
	}
	if e := <-firstEnd; e.err != nil || !strings.Contains(e.reason, "administrator") {
		t.Errorf("the operator's ended with %q, %v", e.reason, e.err)
	}
	for _, role := range []control.Role{control.Operate, control.Admin} {
		if other, _ := trace(role); <-other {
			t.Errorf("somebody with role %v has taken an administrator's", role)
		}
	}
}
