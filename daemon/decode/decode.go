package decode

import (
	"encoding/hex"
	"fmt"
	"time"

	"lunar/control"
	"lunar/target"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// maxRequests bounds the requests that are remembered: more than a session can have
// under way. Beyond it answers have been missed, and all are forgotten.
const maxRequests = 1 << 14

// Decoder decodes the PDUs of one session, in their order. The zero Decoder is ready.
type Decoder struct {
	requests map[uint32]request // not answered, by Initiator Task Tag
}

// request is what an answer is told with.
type request struct {
	at       time.Time
	lun      *uint64
	command  string
	function string
}

// PDU decodes a PDU of a moment, before which some are missing. An answer behind the gap
// may be to a request in it, whose tag an earlier one had: it is told with neither.
func (d *Decoder) PDU(p *target.TracedPDU, at time.Time, missing int) *control.TracedPDU {
	if missing > 0 {
		clear(d.requests)
	}
	b := &p.BHS
	op := b.Opcode()
	out := &control.TracedPDU{
		Time: at, Direction: control.TraceReceived, CID: int(p.CID), PDU: op.String(), BHS: hex.EncodeToString(b[:]),
		AHSLength: b.TotalAHSLength(), DataLength: b.DataSegmentLength(), MissingBefore: missing,
		Again: p.Way == target.PDUSentAgain, Damaged: p.Way == target.PDUDamaged, Final: b.Final(),
	}
	if b.ITT() != pdu.ReservedTag {
		out.ITT = field(b.ITT())
	}
	sent := p.Way == target.PDUSent || p.Way == target.PDUSentAgain
	if sent {
		out.Direction = control.TraceSent
		out.ExpCmdSN, out.MaxCmdSN = field(b.ExpCmdSN()), field(b.MaxCmdSN())
	} else {
		out.Immediate, out.ExpStatSN = b.Immediate(), field(b.ExpStatSN())
	}
	if decode := decoders[op&0x3f]; decode != nil {
		decode(b, out)
	}
	d.relate(op, sent, out)
	return out
}

// relate tells an answer with what it answers, and remembers a request.
func (d *Decoder) relate(op pdu.Opcode, sent bool, p *control.TracedPDU) {
	if p.ITT == nil {
		return
	}
	if !sent && op != pdu.OpDataOut && op != pdu.OpSNACKRequest {
		if d.requests == nil || len(d.requests) >= maxRequests {
			d.requests = make(map[uint32]request)
		}
		d.requests[*p.ITT] = request{p.Time, p.LUN, p.Command, p.Function}
		return
	}
	r, known := d.requests[*p.ITT]
	if !known {
		return
	}
	took := float64(p.Time.Sub(r.at).Nanoseconds()) / 1e3
	p.SinceRequest, p.LUN, p.Command, p.Function = &took, r.lun, r.command, r.function
	if sent && !p.Again && p.StatSN != nil && op != pdu.OpR2T {
		delete(d.requests, *p.ITT)
	}
}

// field is a field that is there.
func field[T ~uint32](v T) *uint32 {
	n := uint32(v)
	return &n
}

// tag is a tag that may be absent.
func tag(v uint32) *uint32 {
	if v == pdu.ReservedTag {
		return nil
	}
	return &v
}

// lun is the number of a LUN, or its 8 bytes if it has none.
func lun(b *pdu.BHS) *uint64 {
	n, ok := scsi.DecodeLUN(b.LUN())
	if !ok {
		n = b.LUN()
	}
	return &n
}

// decoders take apart what a PDU has of its own, by opcode.
var decoders = [64]func(*pdu.BHS, *control.TracedPDU){
	pdu.OpNOPOut:                nopOut,
	pdu.OpSCSICommand:           command,
	pdu.OpTaskManagementRequest: taskManagement,
	pdu.OpTextRequest:           numbered,
	pdu.OpDataOut:               dataOut,
	pdu.OpLogoutRequest:         logout,
	pdu.OpSNACKRequest:          snack,

	pdu.OpNOPIn:                  nopIn,
	pdu.OpSCSIResponse:           response,
	pdu.OpTaskManagementResponse: taskManaged,
	pdu.OpTextResponse:           answered,
	pdu.OpDataIn:                 dataIn,
	pdu.OpLogoutResponse:         loggedOut,
	pdu.OpR2T:                    r2t,
	pdu.OpAsyncMessage:           asynchronous,
	pdu.OpReject:                 rejected,
}

func numbered(b *pdu.BHS, p *control.TracedPDU) { p.CmdSN = field(b.CmdSN()) }

func answered(b *pdu.BHS, p *control.TracedPDU) { p.StatSN = field(b.StatSN()) }

func nopOut(b *pdu.BHS, p *control.TracedPDU) {
	numbered(b, p)
	p.TTT = tag(b.TTT())
}

func command(b *pdu.BHS, p *control.TracedPDU) {
	numbered(b, p)
	c := (*pdu.SCSICommand)(b)
	p.LUN, p.CDB, p.Expected = lun(b), hex.EncodeToString(c.CDB()[:]), field(c.ExpectedDataTransferLength())
	if p.Command = scsi.CommandName(c.CDB()); p.Command == "" {
		p.Command = fmt.Sprintf("operation code %02xh", c.CDB()[0])
	}
	p.Attribute = word(attributes, uint8(c.Attribute()))
	p.Transfer = transfers[[2]bool{c.Read(), c.Write()}]
}

func taskManagement(b *pdu.BHS, p *control.TracedPDU) {
	numbered(b, p)
	r := (*pdu.TaskManagementRequest)(b)
	p.LUN, p.Function, p.ReferencedTag = lun(b), r.Function().String(), tag(r.ReferencedTaskTag())
}

func dataOut(b *pdu.BHS, p *control.TracedPDU) {
	o := (*pdu.DataOut)(b)
	p.TTT, p.DataSN, p.Offset = tag(b.TTT()), field(o.DataSN()), field(o.BufferOffset())
}

func logout(b *pdu.BHS, p *control.TracedPDU) {
	numbered(b, p)
	p.Reason = word(logoutReasons, uint8((*pdu.LogoutRequest)(b).Reason()))
}

func snack(b *pdu.BHS, p *control.TracedPDU) {
	p.TTT, p.Reason = tag(b.TTT()), word(snackTypes, uint8((*pdu.SNACKRequest)(b).Type()))
}

func nopIn(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	p.TTT = tag(b.TTT())
}

func response(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	r := (*pdu.SCSIResponse)(b)
	p.ExpDataSN = field(r.ExpDataSN())
	if r.Response() != pdu.ResponseCompleted {
		p.Response = fmt.Sprintf("not executed: response %02xh", uint8(r.Response()))
		return
	}
	p.Status = word(statuses, r.Status())
	residual(p, r.Overflow(), r.Underflow(), r.ResidualCount())
}

func residual(p *control.TracedPDU, over, under bool, count uint32) {
	if over || under {
		p.Over, p.Residual = over, &count
	}
}

func taskManaged(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	p.Response = (*pdu.TaskManagementResponse)(b).Response().String()
}

func dataIn(b *pdu.BHS, p *control.TracedPDU) {
	in := (*pdu.DataIn)(b)
	p.TTT, p.DataSN, p.Offset = tag(b.TTT()), field(in.DataSN()), field(in.BufferOffset())
	if in.HasStatus() {
		answered(b, p)
		p.Status = word(statuses, in.Status())
		residual(p, in.Overflow(), in.Underflow(), in.ResidualCount())
	}
}

func loggedOut(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	p.Response = word(logoutResponses, uint8((*pdu.LogoutResponse)(b).Response()))
}

func r2t(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	r := (*pdu.R2T)(b)
	p.TTT, p.R2TSN, p.Offset, p.Desired = tag(b.TTT()), field(r.R2TSN()), field(r.BufferOffset()), field(r.DesiredDataTransferLength())
}

func asynchronous(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	p.Reason = (*pdu.AsyncMessage)(b).Event().String()
}

func rejected(b *pdu.BHS, p *control.TracedPDU) {
	answered(b, p)
	p.Reason = (*pdu.Reject)(b).Reason().String()
}
