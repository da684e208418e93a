package pdu

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

// fields maps the name of an accessor to the value that its setter gets.
type fields map[string]any

// goldens holds every PDU with all its fields, and its 48 bytes as written
// out by hand from the layouts of RFC 7143 11.3 to 11.19: one line for
// each sixteen bytes.
var goldens = []struct {
	view   any
	fields fields
	bytes  string
}{
	{new(NOPOut).Init(), fields{"Immediate": true, "LUN": uint64(0x0001000000000000), "ITT": uint32(0x10203040),
		"TTT": uint32(0xffffffff), "CmdSN": SN(7), "ExpStatSN": SN(9), "DataSegmentLength": 0x010203}, `
		40 80 00 00 00 01 02 03 00 01 00 00 00 00 00 00
		10 20 30 40 ff ff ff ff 00 00 00 07 00 00 00 09
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(NOPIn).Init(), fields{"LUN": uint64(0x0001000000000000), "ITT": uint32(0xffffffff),
		"TTT": uint32(0xa1a2a3a4), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3)}, `
		20 80 00 00 00 00 00 00 00 01 00 00 00 00 00 00
		ff ff ff ff a1 a2 a3 a4 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(SCSICommand).Init(), fields{"Final": true, "Read": true, "Write": true, "Attribute": AttributeOrdered,
		"TotalAHSLength": 8, "DataSegmentLength": 0x200, "LUN": uint64(0x4001000000000000), "ITT": uint32(5),
		"ExpectedDataTransferLength": uint32(0x00100000), "CmdSN": SN(0xfffffffe), "ExpStatSN": SN(0x01020304)}, `
		01 e2 00 00 02 00 02 00 40 01 00 00 00 00 00 00
		00 00 00 05 00 10 00 00 ff ff ff fe 01 02 03 04
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(SCSIResponse).Init(), fields{"BidirectionalReadOverflow": true, "BidirectionalReadUnderflow": true, "Overflow": true,
		"Underflow": true, "Response": ResponseTargetFailure, "Status": uint8(2), "DataSegmentLength": 20, "ITT": uint32(5),
		"SNACKTag": uint32(0x11121314), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3), "ExpDataSN": SN(4),
		"BidirectionalReadResidualCount": uint32(0x21222324), "ResidualCount": uint32(0x31323334)}, `
		21 9e 01 02 00 00 00 14 00 00 00 00 00 00 00 00
		00 00 00 05 11 12 13 14 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 04 21 22 23 24 31 32 33 34`},
	{new(TaskManagementRequest).Init(), fields{"Immediate": true, "Function": FunctionLogicalUnitReset, "LUN": uint64(0x0002000000000000),
		"ITT": uint32(5), "ReferencedTaskTag": uint32(0x01020304), "CmdSN": SN(6), "ExpStatSN": SN(7), "RefCmdSN": SN(8), "ExpDataSN": SN(9)}, `
		42 85 00 00 00 00 00 00 00 02 00 00 00 00 00 00
		00 00 00 05 01 02 03 04 00 00 00 06 00 00 00 07
		00 00 00 08 00 00 00 09 00 00 00 00 00 00 00 00`},
	{new(TaskManagementResponse).Init(), fields{"Response": FunctionRejected, "ITT": uint32(5), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3)}, `
		22 80 ff 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 05 00 00 00 00 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(LoginRequest).Init(), fields{"Immediate": true, "Transit": true, "Continue": true, "CSG": StageLoginOperationalNegotiation,
		"NSG": StageFullFeaturePhase, "VersionMax": uint8(1), "VersionMin": uint8(2), "ISID": ISID{0x80, 1, 2, 3, 4, 5}, "TSIH": uint16(0x0607),
		"ITT": uint32(5), "CID": uint16(0x0809), "CmdSN": SN(6), "ExpStatSN": SN(7)}, `
		43 c7 01 02 00 00 00 00 80 01 02 03 04 05 06 07
		00 00 00 05 08 09 00 00 00 00 00 06 00 00 00 07
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(LoginResponse).Init(), fields{"Transit": true, "Continue": false, "CSG": StageSecurityNegotiation,
		"NSG": StageLoginOperationalNegotiation, "VersionMax": uint8(1), "VersionActive": uint8(2), "ISID": ISID{0x80, 1, 2, 3, 4, 5},
		"TSIH": uint16(0x0607), "ITT": uint32(5), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3), "Status": LoginSessionDoesNotExist}, `
		23 81 01 02 00 00 00 00 80 01 02 03 04 05 06 07
		00 00 00 05 00 00 00 00 00 00 00 01 00 00 00 02
		00 00 00 03 02 0a 00 00 00 00 00 00 00 00 00 00`},
	{new(TextRequest).Init(), fields{"Final": true, "Continue": true, "LUN": uint64(1), "ITT": uint32(5), "TTT": uint32(0xffffffff),
		"CmdSN": SN(6), "ExpStatSN": SN(7)}, `
		04 c0 00 00 00 00 00 00 00 00 00 00 00 00 00 01
		00 00 00 05 ff ff ff ff 00 00 00 06 00 00 00 07
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(TextResponse).Init(), fields{"Continue": true, "LUN": uint64(1), "ITT": uint32(5), "TTT": uint32(8),
		"StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3)}, `
		24 40 00 00 00 00 00 00 00 00 00 00 00 00 00 01
		00 00 00 05 00 00 00 08 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(DataOut).Init(), fields{"Final": true, "DataSegmentLength": 0x2000, "LUN": uint64(0x0003000000000000), "ITT": uint32(5), "TTT": uint32(6),
		"ExpStatSN": SN(7), "DataSN": SN(8), "BufferOffset": uint32(0x00010000)}, `
		05 80 00 00 00 00 20 00 00 03 00 00 00 00 00 00
		00 00 00 05 00 00 00 06 00 00 00 00 00 00 00 07
		00 00 00 00 00 00 00 08 00 01 00 00 00 00 00 00`},
	{new(DataIn).Init(), fields{"Final": true, "Acknowledge": true, "Overflow": true, "Underflow": true, "HasStatus": true, "Status": uint8(8),
		"DataSegmentLength": 0x1000, "LUN": uint64(0x0003000000000000), "ITT": uint32(5), "TTT": uint32(6), "StatSN": SN(1), "ExpCmdSN": SN(2),
		"MaxCmdSN": SN(3), "DataSN": SN(8), "BufferOffset": uint32(0x00020000), "ResidualCount": uint32(0x0a0b0c0d)}, `
		25 c7 00 08 00 00 10 00 00 03 00 00 00 00 00 00
		00 00 00 05 00 00 00 06 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 08 00 02 00 00 0a 0b 0c 0d`},
	{new(LogoutRequest).Init(), fields{"Immediate": true, "Reason": LogoutRemoveForRecovery, "ITT": uint32(5), "CID": uint16(0x0102), "CmdSN": SN(6), "ExpStatSN": SN(7)}, `
		46 82 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 05 01 02 00 00 00 00 00 06 00 00 00 07
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{new(LogoutResponse).Init(), fields{"Response": LogoutCleanupFailed, "ITT": uint32(5), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3),
		"Time2Wait": uint16(0x0102), "Time2Retain": uint16(0x0304)}, `
		26 80 03 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 05 00 00 00 00 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 00 01 02 03 04 00 00 00 00`},
	{new(SNACKRequest).Init(), fields{"Type": SNACKRData, "LUN": uint64(1), "ITT": uint32(5), "TTT": uint32(6), "ExpStatSN": SN(7),
		"BegRun": SN(8), "RunLength": uint32(9)}, `
		10 83 00 00 00 00 00 00 00 00 00 00 00 00 00 01
		00 00 00 05 00 00 00 06 00 00 00 00 00 00 00 07
		00 00 00 00 00 00 00 00 00 00 00 08 00 00 00 09`},
	{new(R2T).Init(), fields{"LUN": uint64(1), "ITT": uint32(5), "TTT": uint32(6), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3),
		"R2TSN": SN(4), "BufferOffset": uint32(0x00040000), "DesiredDataTransferLength": uint32(0x00050000)}, `
		31 80 00 00 00 00 00 00 00 00 00 00 00 00 00 01
		00 00 00 05 00 00 00 06 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 04 00 04 00 00 00 05 00 00`},
	{new(AsyncMessage).Init(), fields{"LUN": uint64(1), "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3), "Event": AsyncDropConnection,
		"VCode": uint8(9), "Parameter1": uint16(0x0102), "Parameter2": uint16(0x0304), "Parameter3": uint16(0x0506)}, `
		32 80 00 00 00 00 00 00 00 00 00 00 00 00 00 01
		ff ff ff ff 00 00 00 00 00 00 00 01 00 00 00 02
		00 00 00 03 02 09 01 02 03 04 05 06 00 00 00 00`},
	{new(Reject).Init(), fields{"Reason": RejectInvalidPDUField, "DataSegmentLength": 48, "StatSN": SN(1), "ExpCmdSN": SN(2), "MaxCmdSN": SN(3), "DataSN": SN(4)}, `
		3f 80 09 00 00 00 00 30 00 00 00 00 00 00 00 00
		ff ff ff ff 00 00 00 00 00 00 00 01 00 00 00 02
		00 00 00 03 00 00 00 04 00 00 00 00 00 00 00 00`},
}

// bhsOf is the header under a view.
func bhsOf(view any) *BHS {
	return reflect.ValueOf(view).MethodByName("BHS").Call(nil)[0].Interface().(*BHS)
}

// method finds an accessor on the view, or else on its header.
func method(view any, name string) reflect.Value {
	if m := reflect.ValueOf(view).MethodByName(name); m.IsValid() {
		return m
	}
	return reflect.ValueOf(bhsOf(view)).MethodByName(name)
}

func TestGoldenLayouts(t *testing.T) {
	for _, g := range goldens {
		name := reflect.TypeOf(g.view).Elem().Name()
		t.Run(name, func(t *testing.T) {
			for field, value := range g.fields {
				method(g.view, "Set"+field).Call([]reflect.Value{reflect.ValueOf(value)})
			}
			want, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(g.bytes))
			if err != nil {
				t.Fatal(err)
			}
			if got := bhsOf(g.view)[:]; !bytes.Equal(got, want) {
				t.Errorf("encoded\n%s\nexpected\n%s", hex.Dump(got), hex.Dump(want))
			}
			for field, value := range g.fields {
				if got := method(g.view, field).Call(nil)[0].Interface(); got != value {
					t.Errorf("%s = %v, expected %v", field, got, value)
				}
			}
		})
	}
}

// TestGoldensAreComplete: every setter of every view, and every opcode, is in
// the table.
func TestGoldensAreComplete(t *testing.T) {
	opcodes := map[Opcode]bool{}
	for _, g := range goldens {
		opcodes[bhsOf(g.view).Opcode()] = true
		typ := reflect.TypeOf(g.view)
		for i := range typ.NumMethod() {
			field, isSetter := strings.CutPrefix(typ.Method(i).Name, "Set")
			if _, covered := g.fields[field]; isSetter && !covered {
				t.Errorf("%v: %s is not in the table", typ, field)
			}
		}
	}
	for op := range Opcode(64) {
		if op.Known() != opcodes[op] {
			t.Errorf("opcode %v: known is %v, in the table is %v", op, op.Known(), opcodes[op])
		}
	}
}

// TestSettersKeepNeighbours: clearing a bit field leaves the other bits of its
// byte alone.
func TestSettersKeepNeighbours(t *testing.T) {
	for _, g := range goldens {
		view := reflect.New(reflect.TypeOf(g.view).Elem())
		for field := range g.fields {
			header := bhsOf(view.Interface())
			for i := range header {
				header[i] = 0xff
			}
			before := method(view.Interface(), field).Call(nil)[0]
			set := method(view.Interface(), "Set"+field)
			set.Call([]reflect.Value{reflect.Zero(before.Type())})
			if got := method(view.Interface(), field).Call(nil)[0]; !got.IsZero() {
				t.Errorf("%v: %s = %v after it was cleared", view.Type(), field, got)
			}
			set.Call([]reflect.Value{before})
			for i, b := range header {
				if b != 0xff {
					t.Errorf("%v: %s touched byte %d: 0x%02x", view.Type(), field, i, b)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{OpR2T.String(), "Ready To Transfer"},
		{Opcode(0x3e).String(), "opcode 0x3e"},
		{FunctionQueryTask.String(), "QUERY TASK"},
		{FunctionRejected.String(), "function rejected"},
		{TaskManagementResponseCode(9).String(), "response 0x09"},
		{StageFullFeaturePhase.String(), "FullFeaturePhase"},
		{Stage(2).String(), "stage 0x02"},
		{AsyncTaskTermination.String(), "all active tasks are being terminated"},
		{RejectSNACK.String(), "SNACK reject"},
		{RejectReason(1).String(), "reason 0x01"},
		{LoginNotFound.String(), "not found"},
		{LoginStatus(0x0405).String(), "login status 0x0405"},
		{ISID{0x80, 1, 2, 3, 4, 5}.String(), "800102030405"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, expected %q", c.got, c.want)
		}
	}
}
