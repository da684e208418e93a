package decode

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lunar/target"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// TestDecode: what is told of each PDU, beside what all have.
func TestDecode(t *testing.T) {
	start := time.Unix(0, 0).UTC()
	var d Decoder
	for i, test := range []struct {
		way  target.PDUWay
		make func(*pdu.BHS)
		want string // of the document, without spaces
		not  string
	}{
		{target.PDUReceived, func(b *pdu.BHS) {
			p := (*pdu.SCSICommand)(b).Init()
			p.SetRead(true)
			p.SetExpectedDataTransferLength(4096)
			p.CDB()[0] = 0x28
			b.SetLUN(scsi.EncodeLUN(300))
		}, `"lun":300|"command":"READ(10)"|"cdb":"28|"transfer":"read"|"expected_bytes":4096|"cmd_sn":0|"pdu":"SCSI Command"|"direction":"received"`, "since_request"},
		{target.PDUSent, func(b *pdu.BHS) {
			(*pdu.DataIn)(b).Encode(&pdu.DataInFields{DataSN: 3, Offset: 512, Length: 512})
		}, `"command":"READ(10)"|"lun":300|"data_sn":3|"offset":512|"since_request_microseconds":1000|"max_cmd_sn":0|"data_length":512`, `"stat_sn"`},
		{target.PDUSentAgain, func(b *pdu.BHS) {
			(*pdu.SCSIResponse)(b).Encode(&pdu.SCSIResponseFields{Status: 8, Residual: pdu.Residual{Over: true, Count: 9}})
		}, `"again":true|"status":"BUSY"|"residual_bytes":9|"residual_over":true|"since_request_microseconds":2000`, ""},
		{target.PDUSent, func(b *pdu.BHS) {
			(*pdu.SCSIResponse)(b).Encode(&pdu.SCSIResponseFields{Response: pdu.ResponseTargetFailure})
		}, `"response":"not executed: response 01h"|"since_request_microseconds":3000`, `"status"`},
		{target.PDUSent, func(b *pdu.BHS) { (*pdu.SCSIResponse)(b).Encode(&pdu.SCSIResponseFields{}) }, `"status":"GOOD"`, "since_request"},
		{target.PDUReceived, func(b *pdu.BHS) {
			p := (*pdu.TaskManagementRequest)(b).Init()
			p.SetFunction(pdu.FunctionAbortTask)
			p.SetReferencedTaskTag(7)
		}, `"function":"ABORT TASK"|"referenced_tag":7|"lun":0`, `"command"`},
		{target.PDUSent, func(b *pdu.BHS) { (*pdu.TaskManagementResponse)(b).Init() }, `"function":"ABORT TASK"|"response":|"lun":0`, ""},
		{target.PDUSent, func(b *pdu.BHS) {
			(*pdu.NOPIn)(b).Init()
			b.SetITT(pdu.ReservedTag)
			b.SetTTT(5)
		}, `"ttt":5|"stat_sn":0`, `"itt"`},
		{target.PDUDamaged, func(b *pdu.BHS) { (*pdu.DataOut)(b).Init() }, `"damaged":true|"pdu":"SCSI Data-Out"`, `"cmd_sn"`},
		{target.PDUReceived, func(b *pdu.BHS) { (*pdu.SNACKRequest)(b).Init().SetType(pdu.SNACKStatus) }, `"reason":"status missing"`, `"cmd_sn"`},
		{target.PDUSent, func(b *pdu.BHS) { (*pdu.AsyncMessage)(b).Init().SetEvent(pdu.AsyncEvent(200)) }, `"reason":"event 0xc8"`, `"itt"`},
		{target.PDUSent, func(b *pdu.BHS) { (*pdu.Reject)(b).Init().SetReason(pdu.RejectSNACK) }, `"reason":"`, `"itt"`},
		{target.PDUReceived, func(b *pdu.BHS) { b.SetOpcode(0x1f) }, `"pdu":"opcode 0x1f"`, ""},
	} {
		p := target.TracedPDU{CID: 4, Way: test.way}
		test.make(&p.BHS)
		text, err := json.Marshal(d.PDU(&p, start.Add(time.Duration(i)*time.Millisecond), 0))
		if err != nil {
			t.Fatal(err)
		}
		for want := range strings.SplitSeq(test.want, "|") {
			if !strings.Contains(string(text), want) {
				t.Errorf("%d: found %s, expected %s", i, text, want)
			}
		}
		if test.not != "" && strings.Contains(string(text), test.not) {
			t.Errorf("%d: found %s, expected no %s", i, text, test.not)
		}
	}
}

// TestGap: an answer behind a gap is not told as one to a request before it: the gap may
// have another one with the same tag.
func TestGap(t *testing.T) {
	var d Decoder
	p := target.TracedPDU{Way: target.PDUReceived}
	(*pdu.SCSICommand)(&p.BHS).Init().CDB()[0] = 0x2a
	d.PDU(&p, time.Time{}, 0)
	p.Way = target.PDUSent
	(*pdu.SCSIResponse)(&p.BHS).Encode(&pdu.SCSIResponseFields{})
	if out := d.PDU(&p, time.Time{}, 3); out.MissingBefore != 3 || out.Command != "" || out.LUN != nil || out.SinceRequest != nil {
		t.Errorf("found %+v", out)
	}
}

// TestRequestsAreBounded: requests whose answers are missing are forgotten.
func TestRequestsAreBounded(t *testing.T) {
	var d Decoder
	p := target.TracedPDU{Way: target.PDUReceived}
	(*pdu.SCSICommand)(&p.BHS).Init()
	for tag := range uint32(3 * maxRequests) {
		p.BHS.SetITT(tag)
		d.PDU(&p, time.Time{}, 0)
	}
	if n := len(d.requests); n > maxRequests {
		t.Errorf("found %d", n)
	}
}
