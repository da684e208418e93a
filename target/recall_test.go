package target

import (
	"testing"

	"lunar/internal/buf"
	"lunar/target/pdu"
)

// silent is a Datamover that sends nothing.
type silent struct{ Resender }

func (silent) SendControl(*pdu.BHS, []byte, *buf.Ref) {}
func (silent) Resend(*pdu.BHS, []byte)                {}
func (silent) MaxDataIn() int                         { return 8192 }

// TestRecallIsBounded: who acknowledges nothing makes a connection keep no more than
// a bounded number of bytes, of whatever PDUs.
func TestRecallIsBounded(t *testing.T) {
	r := &recall{Resender: silent{}, conn: &Connection{core: &core{tasks: newTaskTable(4)}}}
	const pings, each = 100, 256 << 10
	var p pdu.NOPIn
	p.Init()
	p.BHS().SetITT(1)
	for sn := range pdu.SN(pings) {
		r.SendControl(p.BHS(), make([]byte, each), nil)
		r.numbered(sn)
	}
	kept := 0
	for _, s := range r.statuses {
		kept += len(s.data)
	}
	if kept > maxRecalled {
		t.Errorf("%d bytes are kept, expected at most %d", kept, maxRecalled)
	}
	if last := r.statuses[len(r.statuses)-1].bhs.StatSN(); last != pings-1 || r.stamped != len(r.statuses) {
		t.Errorf("found StatSN %d as the last of %d, %d of them numbered", last, len(r.statuses), r.stamped)
	}
	r.acknowledged(pings)
	if len(r.statuses) != 0 || r.owed != 0 {
		t.Errorf("found %d statuses with %d bytes that were acknowledged", len(r.statuses), r.owed)
	}
}

// TestResegmentBeforeTheStatus: a status that has no StatSN yet is not sent again; it
// leaves as it was made.
func TestResegmentBeforeTheStatus(t *testing.T) {
	r := &recall{Resender: silent{}, conn: &Connection{core: &core{tasks: newTaskTable(4)}}}
	var in pdu.DataIn
	in.Init()
	in.BHS().SetITT(7)
	r.keep(in.BHS(), make([]byte, 512))
	var rsp pdu.SCSIResponse
	rsp.Init()
	rsp.BHS().SetITT(7)
	r.SendControl(rsp.BHS(), nil, nil)
	var p pdu.SNACKRequest
	p.Init()
	p.SetType(pdu.SNACKRData)
	p.BHS().SetITT(7)
	p.BHS().SetTTT(1)
	if r.resegment(&p) {
		t.Error("a status without StatSN was sent again")
	}
	r.numbered(5)
	if !r.resegment(&p) {
		t.Error("refused though the status has been sent")
	}
}
