package initiator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// SCSI status codes (SAM-5 5.3.1).
const (
	StatusGood                = 0x00
	StatusCheckCondition      = 0x02
	StatusConditionMet        = 0x04
	StatusBusy                = 0x08
	StatusReservationConflict = 0x18
	StatusTaskSetFull         = 0x28
	StatusACAActive           = 0x30
	StatusTaskAborted         = 0x40
)

var knownStatus = map[byte]bool{
	StatusGood: true, StatusCheckCondition: true, StatusConditionMet: true, StatusBusy: true,
	StatusReservationConflict: true, StatusTaskSetFull: true, StatusACAActive: true, StatusTaskAborted: true,
}

// Task attributes of byte 1 of a SCSI Command.
const (
	AttrUntagged = iota
	AttrSimple
	AttrOrdered
	AttrHeadOfQueue
	AttrACA
)

// ErrWindowClosed is returned by Start when CmdSN is beyond MaxCmdSN.
var ErrWindowClosed = errors.New("command window is closed")

// Command is a SCSI command to start.
type Command struct {
	CDB       []byte // up to 16 bytes, or more with an extended CDB AHS
	LUN       uint64 // number
	Out       []byte // data to write; its length is the expected length
	InLen     int    // expected length of a read; with Out the command is bidirectional
	Attr      byte
	Immediate bool // outside the command window

	// Segment, when not 0, cuts Data-Out PDUs shorter than negotiated.
	Segment int
	// HoldData leaves every R2T unanswered, in Task.R2Ts, until SendData.
	HoldData bool
}

// Result is how a command ended.
type Result struct {
	Response  byte // iSCSI response; the rest means something with 0 only
	Status    byte
	Sense     []byte // without SenseLength
	In        []byte // data received
	Residual  uint32
	Overflow  bool
	Underflow bool

	// Of what a bidirectional command reads.
	ReadResidual                uint32
	ReadOverflow, ReadUnderflow bool
}

// SenseKey returns key, additional sense code and qualifier, for both formats
// of sense data; zeros without sense.
func (r *Result) SenseKey() (key, asc, ascq byte) {
	s := r.Sense
	switch {
	case len(s) >= 4 && s[0]&0x7f >= 0x72:
		return s[1] & 0x0f, s[2], s[3]
	case len(s) >= 14 && s[0]&0x7f >= 0x70:
		return s[2] & 0x0f, s[12], s[13]
	case len(s) >= 3:
		return s[2] & 0x0f, 0, 0
	}
	return 0, 0, 0
}

// Task is a command between Start and its response.
type Task struct {
	Command Command
	ITT     uint32
	CmdSN   uint32
	Done    bool
	Result  Result
	R2Ts    []*PDU // held back, oldest first

	in           []byte
	received     int // bytes of Data-In
	burst        int // bytes since the last F
	final        bool
	askedData    uint32 // DataSN before which what is missing was asked for
	dataPDUs     uint32 // Data-In and R2T PDUs seen: DataSN and R2TSN share ExpDataSN
	unsolicited  int    // bytes sent without R2T
	asked        int    // first byte not asked for yet
	openTransfer map[uint32]bool
}

// Start sends a command with as much immediate and unsolicited data as was
// negotiated. It returns ErrWindowClosed rather than overrun the window.
func (c *Conn) Start(cmd Command) (*Task, error) {
	if cmd.LUN > mostLUN {
		return nil, fmt.Errorf("LUN %d: expected a number of at most %d", cmd.LUN, mostLUN)
	}
	if !cmd.Immediate && !c.WindowOpen() {
		return nil, fmt.Errorf("%w: CmdSN %d, MaxCmdSN %d", ErrWindowClosed, c.CmdSN, c.MaxCmdSN)
	}
	t := &Task{Command: cmd, ITT: c.NewITT(), CmdSN: c.CmdSN, final: true, openTransfer: map[uint32]bool{}}
	t.in = make([]byte, cmd.InLen)
	immediate := c.immediateLength(len(cmd.Out))
	t.unsolicited = c.unsolicitedLength(len(cmd.Out), immediate)
	t.asked = t.unsolicited
	c.tasks[t.ITT] = t
	if err := c.Send(c.commandPDU(t, immediate)); err != nil {
		c.Forget(t)
		return nil, err
	}
	if !cmd.Immediate {
		c.CmdSN++
	}
	return t, c.sendBurst(t, NoTag, immediate, t.unsolicited)
}

func (c *Conn) immediateLength(out int) int {
	if !c.Params.ImmediateData {
		return 0
	}
	return min(out, c.Params.FirstBurstLength, c.Params.TargetMaxRecv)
}

func (c *Conn) unsolicitedLength(out, immediate int) int {
	if c.Params.InitialR2T {
		return immediate
	}
	return min(out, c.Params.FirstBurstLength)
}

func (c *Conn) commandPDU(t *Task, immediate int) *PDU {
	cmd := &t.Command
	p := NewPDU(OpSCSICommand, cmd.Attr&7, cmd.Out[:immediate])
	if immediate == t.unsolicited {
		p.BHS[1] |= FlagFinal
	}
	if len(cmd.Out) > 0 {
		p.BHS[1] |= FlagWrite
	}
	if cmd.InLen > 0 {
		p.BHS[1] |= FlagRead
	}
	if cmd.Immediate {
		p.SetImmediate()
	}
	p.SetLUN(cmd.LUN)
	p.SetU32(AtITT, t.ITT)
	p.SetU32(AtTTT, uint32(cmd.expected()))
	p.SetU32(AtCmdSN, t.CmdSN)
	p.SetU32(AtExpStatSN, c.ExpStatSN)
	copy(p.BHS[AtCDB:], cmd.CDB)
	if len(cmd.CDB) > 16 {
		p.AHS = extendedCDB(cmd.CDB[16:])
	}
	if cmd.bidirectional() {
		p.AHS = binary.BigEndian.AppendUint32(append(p.AHS, 0, 5, 2, 0), uint32(cmd.InLen)) // RFC 7143 section 11.2.2.4
	}
	return p
}

func (c *Command) bidirectional() bool { return len(c.Out) > 0 && c.InLen > 0 }

// expected is the Expected Data Transfer Length (RFC 7143 section 11.3.4).
func (c *Command) expected() int {
	if len(c.Out) > 0 {
		return len(c.Out)
	}
	return c.InLen
}

// extendedCDB is the AHS of RFC 7143 section 11.2.2.3, in whole words.
func extendedCDB(rest []byte) []byte {
	ahs := binary.BigEndian.AppendUint16(nil, uint16(len(rest)+1))
	return appendPadded(append(ahs, 1, 0), rest)
}

// sendBurst sends bytes [from, to) of a task as one sequence of Data-Out PDUs.
func (c *Conn) sendBurst(t *Task, ttt uint32, from, to int) error {
	segment := c.Params.TargetMaxRecv
	if t.Command.Segment > 0 {
		segment = min(segment, t.Command.Segment)
	}
	for sn := uint32(0); from < to; sn++ {
		end := min(to, from+segment)
		p := c.DataOut(t, ttt, sn, from, t.Command.Out[from:end])
		if end == to {
			p.BHS[1] |= FlagFinal
		}
		if err := c.Send(p); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// DataOut builds a Data-Out PDU of a task, without F.
func (c *Conn) DataOut(t *Task, ttt, dataSN uint32, offset int, data []byte) *PDU {
	p := NewPDU(OpDataOut, 0, data)
	if ttt != NoTag {
		p.SetLUN(t.Command.LUN)
	}
	p.SetU32(AtITT, t.ITT)
	p.SetU32(AtTTT, ttt)
	p.SetU32(AtExpStatSN, c.ExpStatSN)
	p.SetU32(AtDataSN, dataSN)
	p.SetU32(AtOffset, uint32(offset))
	return p
}

// SendData answers the oldest R2T that a task with HoldData keeps.
func (c *Conn) SendData(t *Task) error {
	if len(t.R2Ts) == 0 {
		return fmt.Errorf("task %#x has no R2T to answer", t.ITT)
	}
	r2t := t.R2Ts[0]
	t.R2Ts = t.R2Ts[1:]
	return c.answerR2T(t, r2t)
}

func (c *Conn) answerR2T(t *Task, r2t *PDU) error {
	delete(t.openTransfer, r2t.TTT())
	from := int(r2t.U32(AtOffset))
	return c.sendBurst(t, r2t.TTT(), from, from+int(r2t.U32(AtLength)))
}

// Forget drops a task that will get no response, such as an aborted one.
func (c *Conn) Forget(t *Task) { delete(c.tasks, t.ITT) }

// Wait steps until the task has its response.
func (c *Conn) Wait(t *Task) (*Result, error) {
	deadline := time.Now().Add(c.timeout())
	for !t.Done {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, fmt.Errorf("task %#x: %w", t.ITT, ErrTimeout)
		}
		if _, err := c.Step(left); err != nil {
			return nil, err
		}
	}
	return &t.Result, nil
}

// Do runs one command to its end, waiting for the window to open first.
func (c *Conn) Do(cmd Command) (*Result, error) {
	for {
		t, err := c.Start(cmd)
		if err == nil {
			return c.Wait(t)
		}
		if !errors.Is(err, ErrWindowClosed) {
			return nil, err
		}
		if _, err := c.Step(0); err != nil {
			return nil, err
		}
	}
}

// Command runs one command: out is written, or up to inLen bytes are read.
func (c *Conn) Command(cdb []byte, lun uint64, out []byte, inLen int) (*Result, error) {
	return c.Do(Command{CDB: cdb, LUN: lun, Out: out, InLen: inLen, Attr: AttrSimple})
}

// Step receives one PDU and lets it take effect: R2T are answered, Data-In
// stored, responses complete their tasks, target pings answered, asynchronous
// messages and rejects kept. It returns the PDU too.
func (c *Conn) Step(timeout time.Duration) (*PDU, error) {
	if c.Params.ErrorRecoveryLevel > 0 {
		return c.stepRecovering(timeout)
	}
	p, err := c.Receive(timeout)
	if err != nil {
		return p, err
	}
	return p, c.take(p)
}

// take lets a PDU take effect.
func (c *Conn) take(p *PDU) error {
	switch p.Opcode() {
	case OpNOPIn:
		return c.stepPing(p)
	case OpAsync:
		c.Async = append(c.Async, p)
	case OpReject:
		c.Rejects = append(c.Rejects, p)
	case OpDataIn, OpR2T, OpSCSIResponse:
		return c.stepTask(p)
	}
	return nil
}

func (c *Conn) stepPing(p *PDU) error {
	if p.TTT() == NoTag {
		return nil
	}
	c.Pings++
	if c.IgnorePings {
		return nil
	}
	answer := NewPDU(OpNOPOut, FlagFinal, nil)
	answer.SetImmediate()
	copy(answer.BHS[AtLUN:], p.BHS[AtLUN:AtITT])
	answer.SetU32(AtITT, NoTag)
	answer.SetU32(AtTTT, p.TTT())
	answer.SetU32(AtCmdSN, c.CmdSN)
	answer.SetU32(AtExpStatSN, c.ExpStatSN)
	return c.Send(answer)
}

func (c *Conn) stepTask(p *PDU) error {
	t := c.tasks[p.ITT()]
	if t == nil {
		return violation(p, "11.2.1.8", "initiator task tag %#08x belongs to no command", p.ITT())
	}
	switch p.Opcode() {
	case OpDataIn:
		return c.stepDataIn(t, p)
	case OpR2T:
		return c.stepR2T(t, p)
	}
	return c.stepResponse(t, p)
}
