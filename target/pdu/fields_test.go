package pdu

import "testing"

// What is encoded at once reads as it does field by field.
func TestEncode(t *testing.T) {
	in := new(DataIn).Encode(&DataInFields{
		ITT: 5, DataSN: 8, Offset: 0x20000, Length: 0x1000, Final: true, Acknowledge: true, LUN: 3 << 48, TTT: 6,
		HasStatus: true, Status: 8, Residual: Residual{Over: true, Count: 7},
	})
	wantIn := *new(DataIn).Init()
	b := wantIn.BHS()
	b.SetITT(5)
	b.SetTTT(6)
	b.SetLUN(3 << 48)
	b.SetFinal(true)
	b.SetDataSegmentLength(0x1000)
	wantIn.SetDataSN(8)
	wantIn.SetBufferOffset(0x20000)
	wantIn.SetAcknowledge(true)
	wantIn.SetHasStatus(true)
	wantIn.SetStatus(8)
	wantIn.SetOverflow(true)
	wantIn.SetResidualCount(7)
	if *in != wantIn {
		t.Errorf("Data-In % x, expected % x", *in, wantIn)
	}
	// What belongs to a bit that is not set is absent.
	in.Encode(&DataInFields{ITT: 5, LUN: 3 << 48, TTT: 6, Status: 8, Residual: Residual{Under: true, Count: 7}})
	wantIn.Init()
	b.SetITT(5)
	b.SetTTT(ReservedTag)
	if *in != wantIn {
		t.Errorf("Data-In % x, expected % x", *in, wantIn)
	}

	rsp := new(SCSIResponse).Encode(&SCSIResponseFields{
		ITT: 5, SNACKTag: 6, Response: ResponseTargetFailure, Status: 2, ExpDataSN: 4, Length: 20,
		Residual: Residual{Under: true, Count: 7}, BidirectionalReadResidual: Residual{Over: true, Count: 8},
	})
	wantRsp := *new(SCSIResponse).Init()
	wantRsp.BHS().SetITT(5)
	wantRsp.BHS().SetDataSegmentLength(20)
	wantRsp.SetSNACKTag(6)
	wantRsp.SetResponse(ResponseTargetFailure)
	wantRsp.SetStatus(2)
	wantRsp.SetExpDataSN(4)
	wantRsp.SetUnderflow(true)
	wantRsp.SetResidualCount(7)
	wantRsp.SetBidirectionalReadOverflow(true)
	wantRsp.SetBidirectionalReadResidualCount(8)
	if *rsp != wantRsp {
		t.Errorf("SCSI Response % x, expected % x", *rsp, wantRsp)
	}
}

func TestDecode(t *testing.T) {
	p := new(SCSICommand).Init()
	b := p.BHS()
	b.SetImmediate(true)
	b.SetFinal(true)
	b.SetLUN(3 << 48)
	b.SetITT(5)
	b.SetCmdSN(6)
	b.SetExpStatSN(7)
	p.SetWrite(true)
	p.SetAttribute(AttributeOrdered)
	p.SetExpectedDataTransferLength(4096)
	p.CDB()[0], p.CDB()[15] = 0x8a, 1
	want := SCSICommandFields{LUN: 3 << 48, ITT: 5, EDTL: 4096, CmdSN: 6, CDB: [16]byte{0: 0x8a, 15: 1},
		Attribute: AttributeOrdered, Immediate: true, Final: true, Write: true}
	if got := p.Decode(); got != want {
		t.Errorf("found %+v, expected %+v", got, want)
	}
	for _, c := range []struct {
		immediate bool
		attribute TaskAttribute
		inTurn    bool
	}{{false, AttributeUntagged, true}, {false, AttributeSimple, true}, {false, AttributeOrdered, false}, {false, AttributeACA, false}, {true, AttributeSimple, false}} {
		b.SetImmediate(c.immediate)
		p.SetAttribute(c.attribute)
		if p.InTurn() != c.inTurn {
			t.Errorf("%+v: found %v", c, p.InTurn())
		}
	}
}

// A PDU takes a StatSN, shows the next one, or has none.
func TestStamp(t *testing.T) {
	status := new(DataIn).Init()
	status.SetHasStatus(true)
	asked := new(NOPIn).Init()
	asked.BHS().SetITT(ReservedTag)
	for _, c := range []struct {
		name         string
		bhs          *BHS
		shown, taken bool
	}{
		{"response", new(SCSIResponse).Init().BHS(), true, true},
		{"Data-In with status", status.BHS(), true, true},
		{"Data-In without status", new(DataIn).Init().BHS(), false, false},
		{"R2T", new(R2T).Init().BHS(), true, false},
		{"NOP-In that answers", new(NOPIn).Init().BHS(), true, true},
		{"NOP-In that asks", asked.BHS(), true, false},
	} {
		taken := c.bhs.Stamp(1, 2, 3)
		if shown := c.bhs.StatSN() == 1; taken != c.taken || shown != c.shown || c.bhs.ExpCmdSN() != 2 || c.bhs.MaxCmdSN() != 3 {
			t.Errorf("%s: taken %v, StatSN %d, ExpCmdSN %d, MaxCmdSN %d", c.name, taken, c.bhs.StatSN(), c.bhs.ExpCmdSN(), c.bhs.MaxCmdSN())
		}
	}
}
