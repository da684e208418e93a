package target

import (
	"errors"
	"time"

	"lunar/internal/evloop"
)

// maxTraces bounds the sessions that are traced at a time.
const maxTraces = 8

// Why a session is not traced.
var (
	ErrNoSession  = errors.New("found no such session")
	ErrTraced     = errors.New("the session is being traced already")
	ErrManyTraces = errors.New("found 8 traces under way, expected fewer")
)

// Trace is of the PDUs of one session, on all its connections. One goroutine uses it.
type Trace struct {
	server  *Server
	session *Session
	ring    *pduRing
	began   time.Time
	epoch   int64  // began, as evloop.Monotonic
	told    uint32 // PDUs that are missing
}

// Next is the oldest PDU that was not read, if there is one, with when it was and how many
// are missing before it.
func (t *Trace) Next() (p TracedPDU, at time.Time, missing int, ok bool) {
	if p, ok = t.ring.next(); !ok {
		return p, at, 0, false
	}
	missing = int(p.missed - t.told)
	t.told = p.missed
	return p, t.began.Add(time.Duration(p.at - t.epoch)), missing, true
}

// Missing is how many PDUs are missing behind the last one that was read, if the trace
// was read to its end.
func (t *Trace) Missing() int { return int(t.ring.missed.Load() - t.told) }

// Session describes the session as it is now.
func (t *Trace) Session() SessionStats { return t.session.stats() }

// Ended is closed when nothing of the session is left. What was traced before can be
// read still.
func (t *Trace) Ended() <-chan struct{} { return t.session.ended }

// Trace begins to trace a session: what it sends and receives from now on. The caller
// closes the trace.
func (s *Server) Trace(tsih uint16) (*Trace, error) {
	t := &Trace{server: s, ring: &pduRing{pdus: make([]TracedPDU, tracedPDUs)}, began: time.Now(), epoch: evloop.Monotonic()}
	if err := s.enlistTrace(t, tsih); err != nil {
		return nil, err
	}
	begun := make(chan struct{})
	state := t.session.state
	state.post(func() { state.trace = t.ring; close(begun) })
	select {
	case <-begun:
		return t, nil
	case <-t.session.ended:
		t.Close()
		return nil, ErrNoSession
	}
}

func (s *Server) enlistTrace(t *Trace, tsih uint16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.session = s.mu.sessions[tsih]; t.session == nil {
		return ErrNoSession
	}
	if len(s.mu.traced) == maxTraces {
		return ErrManyTraces
	}
	if s.mu.traced[t.session] {
		return ErrTraced
	}
	s.mu.traced[t.session] = true
	return nil
}

// Close ends the trace.
func (t *Trace) Close() {
	state := t.session.state
	state.post(func() {
		if state.trace == t.ring { // the next one may have come before
			state.trace = nil
		}
	})
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	delete(t.server.mu.traced, t.session)
}
