package daemon

import (
	"errors"
	"fmt"
	"time"

	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/decode"
	"lunar/target"
)

// trace implements server.Trace.
type trace struct {
	*target.Trace
	decoder     decode.Decoder
	connections map[uint16]target.ConnectionStats // as they were seen last
	told        map[uint16]bool
}

// Trace implements server.Source.
func (s *source) Trace(session uint16) (server.Trace, control.TraceStart, error) {
	began := time.Now()
	of, err := s.daemon.Server.Trace(session)
	if err != nil {
		missing := errors.Is(err, target.ErrNoSession)
		return nil, control.TraceStart{}, &control.Refusal{What: fmt.Sprintf("session %d is not traced", session), Missing: missing, State: !missing, Reasons: []control.Reason{{Text: err.Error()}}}
	}
	n := of.Session()
	start := control.TraceStart{Session: int(n.TSIH), Initiator: n.Initiator, Target: n.Target, Transport: n.Transport, Time: began}
	t := &trace{Trace: of, connections: map[uint16]target.ConnectionStats{}, told: map[uint16]bool{}}
	t.note(n.Connections)
	return t, start, nil
}

// Lines implements server.Trace.
func (t *trace) Lines(most int) (lines []control.TraceLine) {
	for range most {
		p, at, missing, ok := t.Next()
		if !ok {
			break
		}
		if !t.told[p.CID] {
			t.told[p.CID] = true
			lines = append(lines, control.TraceLine{Connection: t.connection(p.CID)})
		}
		lines = append(lines, control.TraceLine{PDU: t.decoder.PDU(&p, at, missing)})
	}
	return lines
}

func (t *trace) note(all []target.ConnectionStats) {
	for _, c := range all {
		t.connections[c.CID] = c
	}
}

// connection describes a connection, which may have gone.
func (t *trace) connection(cid uint16) *control.TraceConnection {
	t.note(t.Session().Connections)
	out := &control.TraceConnection{CID: int(cid)}
	if c, ok := t.connections[cid]; ok {
		out.Portal, out.Address = c.Local.String(), c.Remote.String()
	}
	return out
}
