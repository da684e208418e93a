package initiator

import (
	"bytes"
	"fmt"
	"time"
)

// Task management functions (RFC 7143 section 11.5.1).
const (
	AbortTask        = 1
	AbortTaskSet     = 2
	ClearACA         = 3
	ClearTaskSet     = 4
	LogicalUnitReset = 5
	TargetWarmReset  = 6
	TargetColdReset  = 7
	TaskReassign     = 8
	QueryTask        = 9  // RFC 7144
	QueryTaskSet     = 10 // RFC 7144
	NexusReset       = 11 // RFC 7144
	QueryAsyncEvent  = 12 // RFC 7144
)

// TaskRequest is a task management request. Referenced is the task that
// ABORT TASK and TASK REASSIGN mean.
type TaskRequest struct {
	Function   byte
	LUN        uint64
	Referenced *Task
	Queued     bool   // takes its place in the command window instead of going ahead
	ExpDataSN  uint32 // of TASK REASSIGN
}

// PDU is the request, for Ask.
func (r TaskRequest) PDU() *PDU {
	p := NewPDU(OpTaskRequest, FlagFinal|r.Function, nil)
	p.SetLUN(r.LUN)
	p.SetU32(AtTTT, NoTag)
	if r.Referenced != nil {
		p.SetU32(AtTTT, r.Referenced.ITT)
		if r.Function != TaskReassign {
			p.SetU32(AtMaxCmdSN, r.Referenced.CmdSN) // RefCmdSN
		}
	}
	p.SetU32(AtDataSN, r.ExpDataSN)
	return p
}

// TaskManagement sends a request and returns the response code (RFC 7143
// section 11.6.1; 0 is "function complete"). Responses of other tasks that
// arrive before take effect as in Step.
func (c *Conn) TaskManagement(r TaskRequest) (byte, error) {
	answer, err := c.request(r.PDU(), !r.Queued, OpTaskResponse)
	if err != nil {
		return 0, err
	}
	return answer.BHS[2], nil
}

// Ping sends a NOP-Out with data and checks that the NOP-In brings it back, as
// far as MaxRecvDataSegmentLength allows.
func (c *Conn) Ping(data []byte) error {
	p := NewPDU(OpNOPOut, FlagFinal, data)
	p.SetU32(AtTTT, NoTag)
	answer, err := c.request(p, true, OpNOPIn)
	if err != nil {
		return err
	}
	want := data[:min(len(data), c.Params.MaxRecvDataSegmentLength)]
	if !bytes.Equal(answer.Data, want) {
		return violation(answer, "11.19.2", "%d bytes of ping data differ from the %d sent", len(answer.Data), len(want))
	}
	return nil
}

// Logout sends a logout request with a reason (0 closes the session, 1 the
// connection, 2 removes it for recovery) and returns the response code.
func (c *Conn) Logout(reason byte) (byte, error) {
	code, _, _, err := c.LogoutOf(reason, c.CID)
	return code, err
}

// Text runs a text negotiation and returns the target's keys, gathered over as
// many responses as it takes.
func (c *Conn) Text(keys Keys) (Keys, error) {
	var text []byte
	p := NewPDU(OpTextRequest, FlagFinal, keys.Text())
	p.SetU32(AtTTT, NoTag)
	for {
		answer, err := c.request(p, true, OpTextResponse)
		if err != nil {
			return nil, err
		}
		text = append(text, answer.Data...)
		if answer.Has(FlagFinal) {
			return ParseKeys(text)
		}
		next := NewPDU(OpTextRequest, FlagFinal, nil)
		next.SetU32(AtITT, p.ITT())
		next.SetU32(AtTTT, answer.TTT())
		p = next
	}
}

// DiscoveredTarget is one target of a SendTargets answer, with its addresses as
// they were sent: "host:port,tag".
type DiscoveredTarget struct {
	Name      string
	Addresses []string
}

// SendTargets asks for "All", for one target name, or "" for the own target.
func (c *Conn) SendTargets(which string) ([]DiscoveredTarget, error) {
	keys, err := c.Text(Keys{{"SendTargets", which}})
	if err != nil {
		return nil, err
	}
	var targets []DiscoveredTarget
	for _, k := range keys {
		switch {
		case k.Name == "TargetName":
			targets = append(targets, DiscoveredTarget{Name: k.Value})
		case k.Name == "TargetAddress" && len(targets) > 0:
			last := &targets[len(targets)-1]
			last.Addresses = append(last.Addresses, k.Value)
		default:
			return nil, fmt.Errorf("SendTargets answer has %s=%s out of place", k.Name, k.Value)
		}
	}
	return targets, nil
}

// Ask numbers and sends a request that is no SCSI command, and gives it a tag if it
// has none. Step brings what answers it.
func (c *Conn) Ask(p *PDU, immediate bool) error {
	if p.ITT() == 0 {
		p.SetU32(AtITT, c.NewITT())
	}
	c.number(p, immediate)
	return c.Send(p)
}

// request asks and steps until the PDU that answers arrives. A Reject of the request
// is an error.
func (c *Conn) request(p *PDU, immediate bool, answer byte) (*PDU, error) {
	if err := c.Ask(p, immediate); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(c.timeout())
	for time.Now().Before(deadline) {
		got, err := c.Step(time.Until(deadline))
		if err != nil {
			return nil, err
		}
		if got.Opcode() == OpReject && bytes.Equal(got.Data[AtITT:AtTTT], p.BHS[AtITT:AtTTT]) {
			return nil, &Rejected{Reason: got.BHS[2]}
		}
		if got.ITT() != p.ITT() {
			continue
		}
		if got.Opcode() != answer {
			return nil, violation(got, "11.2.1.8", "answers ITT %#08x, expected %s", p.ITT(), opcodeName(answer))
		}
		return got, nil
	}
	return nil, fmt.Errorf("%s: %w", opcodeName(answer), ErrTimeout)
}

// number stamps CmdSN and ExpStatSN and uses CmdSN up unless immediate.
func (c *Conn) number(p *PDU, immediate bool) {
	p.SetU32(AtCmdSN, c.CmdSN)
	p.SetU32(AtExpStatSN, c.ExpStatSN)
	if immediate {
		p.SetImmediate()
		return
	}
	c.CmdSN++
}

// Rejected is a Reject PDU in answer to a request.
type Rejected struct{ Reason byte }

// Error names the reason (RFC 7143 section 11.17.1).
func (r *Rejected) Error() string { return fmt.Sprintf("rejected with reason %#02x", r.Reason) }
