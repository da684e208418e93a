package daemon

import (
	"errors"
	"fmt"
	"time"

	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/decode"
	"lunar/target"
	"lunar/target/scsi"
)

// trace implements server.Trace.
type trace struct {
	*target.Trace
	decoder decode.Decoder
	told    map[uint16]*target.Connection // by CID, the last one that was told
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
	return &trace{Trace: of, told: map[uint16]*target.Connection{}}, start, nil
}

// Lines implements server.Trace.
func (t *trace) Lines(most int) (lines []control.TraceLine) {
	for range most {
		p, at, missing, ok := t.Next()
		if !ok {
			break
		}
		if c := p.Connection(); t.told[p.CID] != c {
			t.told[p.CID] = c
			local, remote := c.Ends()
			lines = append(lines, control.TraceLine{Connection: &control.TraceConnection{CID: int(p.CID), Portal: local.String(), Address: remote.String()}})
		}
		if p.Way == target.PDURelayed {
			lines = append(lines, control.TraceLine{Relayed: relayedOf(&p, at, missing)})
			continue
		}
		lines = append(lines, control.TraceLine{PDU: t.decoder.PDU(&p, at, missing)})
	}
	return lines
}

func relayedOf(p *target.TracedPDU, at time.Time, missing int) *control.TraceRelayed {
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	lun, _ := scsi.DecodeLUN(p.BHS.LUN())
	return &control.TraceRelayed{
		Time: at, CID: int(p.CID), ITT: p.BHS.ITT(), LUN: lun, Node: p.How.Server,
		Waited: micros(p.How.Waited), Away: micros(p.How.Away), There: micros(p.How.There), Ended: p.How.Ended, MissingBefore: missing,
	}
}
