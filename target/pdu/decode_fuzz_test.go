package pdu

import (
	"encoding/binary"
	"testing"
)

// FuzzDecode: a command is taken apart as RFC 7143 11.3 draws it, whatever its bytes, and
// what is written field by field is the same header again, but for what is reserved.
func FuzzDecode(f *testing.F) {
	f.Add(make([]byte, BHSLength))
	golden := goldenCommand()
	f.Add(golden[:])
	full := make([]byte, BHSLength)
	for i := range full {
		full[i] = 0xff
	}
	f.Add(full)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < BHSLength {
			return
		}
		var header BHS
		copy(header[:], data)
		got := (*SCSICommand)(&header).Decode()
		u32 := func(at int) uint32 { return binary.BigEndian.Uint32(data[at:]) }
		want := SCSICommandFields{
			LUN: binary.BigEndian.Uint64(data[8:]), ITT: u32(16), EDTL: u32(20), CmdSN: SN(u32(24)),
			CDB: [16]byte(data[32:48]), Attribute: TaskAttribute(data[1] & 7), Immediate: data[0]>>6&1 == 1,
			Final: data[1]>>7 == 1, Read: data[1]>>6&1 == 1, Write: data[1]>>5&1 == 1,
		}
		if got != want {
			t.Fatalf("found %+v, expected %+v", got, want)
		}
		if op, immediate, sn := header.Request(); op != Opcode(data[0]&0x3f) || immediate != want.Immediate || sn != want.CmdSN {
			t.Fatalf("found %v, %v, %d of % x", op, immediate, sn, data[:BHSLength])
		}
		for digests := range 4 {
			header1, data1 := digests&1 > 0, digests&2 > 0
			ahs, n, whole := header.Lengths(header1, data1)
			expect := BHSLength + 4*int(data[4]) + (n+3)/4*4
			if header1 {
				expect += 4
			}
			if data1 && n > 0 {
				expect += 4
			}
			if ahs != 4*int(data[4]) || n != int(u32(4)&MaxDataSegmentLength) || whole != expect {
				t.Fatalf("found lengths %d, %d, %d, expected the last to be %d", ahs, n, whole, expect)
			}
		}
		var again SCSICommand
		b := again.Init().BHS()
		b.SetImmediate(got.Immediate)
		b.SetFinal(got.Final)
		again.SetRead(got.Read)
		again.SetWrite(got.Write)
		again.SetAttribute(got.Attribute)
		b.SetLUN(got.LUN)
		b.SetITT(got.ITT)
		again.SetExpectedDataTransferLength(got.EDTL)
		b.SetCmdSN(got.CmdSN)
		*again.CDB() = got.CDB
		if round := again.Decode(); round != got {
			t.Fatalf("found %+v, expected %+v", round, got)
		}
	})
}
