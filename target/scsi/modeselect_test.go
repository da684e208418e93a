package scsi

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/mode"
	"lunar/target/scsi/sense"
)

// modeSelect6 and modeSelect10 return CDB and list of a MODE SELECT with PF.
func modeSelect6(t *testing.T, list string) (cdb, data []byte) {
	data = unhex(t, list)
	return []byte{0x15, 0x10, 0, 0, byte(len(data)), 0}, data
}

func modeSelect10(t *testing.T, list string) (cdb, data []byte) {
	data = unhex(t, list)
	return []byte{0x55, 0x10, 0, 0, 0, 0, 0, byte(len(data) >> 8), byte(len(data)), 0}, data
}

const (
	controlSWP    = "0a 0a 00 10 08 00 0000 ffff 0000"
	controlDSense = "0a 0a 04 10 00 00 0000 ffff 0000"
	cachingOff    = "08 12 00 00 0000 0000 0000 0000 00 00 0000 00 000000"
)

func TestModeSelect(t *testing.T) {
	const short, long = "00000800 00 000200", "0000000000000800 00000000 00000200"
	header6, header10 := "00 00 00 00", "0000 00 00 00 00 0000"
	six, ten := modeSelect6, modeSelect10
	off, swp := State{Blocks: 2048}, State{Blocks: 2048, Values: mode.Values{WriteCache: true, SoftProtect: true}}
	same := State{Blocks: 2048, Values: mode.Values{WriteCache: true}}
	dSense := State{Blocks: 2048, Values: mode.Values{WriteCache: true, DescriptorSense: true}}
	both := State{Blocks: 2048, Values: mode.Values{SoftProtect: true}}
	tests := []struct {
		name string
		make func(*testing.T, string) (cdb, data []byte)
		list string
		want State
	}{
		{"6: nothing", six, "", same},
		{"6: header only", six, header6, same},
		{"6: the same", six, header6 + goldenCaching, same},
		{"6: all the same", six, header6 + goldenSubpages, same},
		{"6: WCE off", six, header6 + cachingOff, off},
		{"6: SWP", six, header6 + controlSWP, swp},
		{"6: D_SENSE", six, header6 + controlDSense, dSense},
		{"6: two pages", six, header6 + controlSWP + cachingOff, both},
		{"6: header of MODE SENSE", six, "1f 00 90 08" + short + controlSWP, swp},
		{"6: any number of blocks", six, "00 00 00 08 00000000 00 000200" + controlSWP, swp},
		{"6: all blocks", six, "00 00 00 08 ffffffff 00 000200" + controlSWP, swp},
		{"10: header only", ten, header10, same},
		{"10: WCE off", ten, header10 + cachingOff, off},
		{"10: short descriptor", ten, "0000 00 00 00 00 0008" + short + controlSWP, swp},
		{"10: long descriptor", ten, "0000 00 00 01 00 0010" + long + controlSWP, swp},
		{"10: long descriptor, all blocks", ten, "0000 00 00 01 00 0010 ffffffffffffffff 00000000 00000200" + controlSWP, swp},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
			other := d.attach()
			cdb, list := tt.make(t, tt.list)
			d.good(cdb, list)
			if got := *d.lu.State(); got != tt.want {
				t.Errorf("state %+v, want %+v", got, tt.want)
			}
			d.good(testUnitReady, nil) // no attention for who did it
			asc, told := other.takeAttention()
			if told != (tt.want != same) || told && asc != 0x2a01 {
				t.Errorf("the other nexus: %t %04x", told, asc)
			}
			if flushed := slices.Contains(d.lane.seen, backstore.Flush); flushed != !tt.want.WriteCache {
				t.Errorf("flushed: %t", flushed)
			}
		})
	}
}

func TestModeSelectRefusals(t *testing.T) {
	list := func(bytePointer, bit int) *sense.Data { return sense.InvalidFieldInList(bytePointer, bit) }
	six, ten := modeSelect6, modeSelect10
	tests := []struct {
		name string
		make func(*testing.T, string) (cdb, data []byte)
		list string
		want *sense.Data
	}{
		{"header cut off", six, "00 00 00", sense.ParameterListLengthError},
		{"10: header cut off", ten, "0000 00 00 00 00 00", sense.ParameterListLengthError},
		{"descriptor cut off", six, "00 00 00 08 00000800 00 0002", sense.ParameterListLengthError},
		{"descriptor length", six, "00 00 00 07 00000800 00 0002", list(3, sense.NoBit)},
		{"two descriptors", six, "00 00 00 10 00000400 00 000200 00000400 00 000200", list(3, sense.NoBit)},
		{"10: long length without LONGLBA", ten, "0000 00 00 00 00 0010 0000000000000800 00000000 00000200", list(6, sense.NoBit)},
		{"10: LONGLBA with the short length", ten, "0000 00 00 01 00 0008 00000800 00 000200", list(6, sense.NoBit)},
		{"fewer blocks", six, "00 00 00 08 000007ff 00 000200", list(4, sense.NoBit)},
		{"other block length", six, "00 00 00 08 00000800 00 001000", list(9, sense.NoBit)},
		{"10: fewer blocks", ten, "0000 00 00 01 00 0010 00000000000007ff 00000000 00000200", list(8, sense.NoBit)},
		{"10: other block length", ten, "0000 00 00 01 00 0010 0000000000000800 00000000 00001000", list(20, sense.NoBit)},
		{"page code alone", six, "00 00 00 00 08", sense.ParameterListLengthError},
		{"subpage header cut off", six, "00 00 00 00 4a 01 00", sense.ParameterListLengthError},
		{"page cut off", six, "00 00 00 00 0a 0a 00 10 08 00 0000 ffff 00", sense.ParameterListLengthError},
		{"no such page", six, "00 00 00 00 02 0a 00000000000000000000", list(4, 5)},
		{"no such subpage", six, "00 00 00 00 4a 02 001c" + hex.EncodeToString(make([]byte, 28)), list(4, 5)},
		{"subpage 0 in subpage format", six, "00 00 00 00 4a 00 000a 0010000000000000ffff", list(4, 5)},
		{"PS", six, "00 00 00 00 8a 0a 00 10 08 00 0000 ffff 0000", list(4, 7)},
		{"page length", six, "00 00 00 00 0a 0b 00 10 08 00 0000 ffff 0000 00", list(5, sense.NoBit)},
		{"subpage length", six, "00 00 00 00 4a 01 001b" + hex.EncodeToString(make([]byte, 27)), list(6, sense.NoBit)},
		{"TST", six, "00 00 00 00 0a 0a 20 10 08 00 0000 ffff 0000", list(6, 5)},
		{"busy timeout", six, "00 00 00 00 0a 0a 00 10 08 00 0000 fffe 0000", list(13, 0)},
		{"second page wrong", six, "00 00 00 00" + controlSWP + "08 12 01" + strings.Repeat("00", 17), list(18, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
			before := *d.lu.State()
			cdb, data := tt.make(t, tt.list)
			d.refused(cdb, data, tt.want)
			if after := *d.lu.State(); after != before {
				t.Errorf("state %+v, was %+v", after, before)
			}
		})
	}
}

func TestModeSelectCDBRefusals(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	list := make([]byte, 4)
	d.refused([]byte{0x15, 0x11, 0, 0, 4, 0}, list, sense.InvalidFieldInCDB(1, 0)) // SP
	d.refused([]byte{0x15, 0x00, 0, 0, 4, 0}, list, sense.InvalidFieldInCDB(1, 4)) // no PF
	d.refused([]byte{0x15, 0x12, 0, 0, 4, 0}, list, sense.InvalidFieldInCDB(1, 1)) // RTD
}

func TestModeSelectWriteThrough(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v", WriteThrough: true})
	cdb, list := modeSelect6(t, "00 00 00 00"+goldenCaching)
	d.refused(cdb, list, sense.InvalidFieldInList(6, 2))
}
