package scsi

import (
	"bytes"
	"errors"
	"testing"

	"lunar/target/scsi/sense"
)

// TestIdentifyingInformation: what was set is reported, to others with a unit
// attention, once it is stable.
func TestIdentifyingInformation(t *testing.T) {
	var stable []Identifying
	var fails error
	d := newDisk(t, diskInfo(), LUConfig{Name: "v", Identifying: Identifying{Device: []byte("old")}, SaveIdentifying: func(i Identifying) error {
		if fails == nil {
			stable = append(stable, i)
		}
		return fails
	}})
	other := d.attach()
	report := func(kind byte) []byte { return []byte{0xa3, 0x05, 0, 0, 0, 0, 0, 0, 3, 0, kind << 1, 0} }
	set := func(kind byte, n int) []byte {
		return []byte{0xa4, 0x06, 0, 0, 0, 0, 0, 0, byte(n >> 8), byte(n), kind << 1, 0}
	}
	equal(t, d.good(report(0x7f), nil), "0000 0008  00 00 0200  04 00 0100")
	equal(t, d.good(report(0), nil), "0000 0003 6f6c64")
	equal(t, d.good(report(2), nil), "0000 0000")
	d.refused(report(1), nil, sense.InvalidFieldInCDB(10, 7))
	text := []byte("third shelf, left\x00")
	d.good(set(2, len(text)), text)
	if got := d.good(report(2), nil); !bytes.Equal(got[4:], text) {
		t.Errorf("found %q", got)
	}
	if len(stable) != 1 || !bytes.Equal(stable[0].Text, text) || string(stable[0].Device) != "old" {
		t.Errorf("stable are %q", stable)
	}
	if r := d.runAs(other, testUnitReady, nil); r.sense.ASC != sense.ASCDeviceIdentifierChanged {
		t.Errorf("another initiator: %+v", r.sense)
	}
	d.good(set(0, 0), nil)
	equal(t, d.good(report(0), nil), "0000 0000")
	d.refused(set(2, 3), []byte("abc"), sense.InvalidFieldInList(2, sense.NoBit))
	d.refused(set(2, 257), make([]byte, 257), sense.InvalidFieldInCDB(6, sense.NoBit))
	d.refused(set(0, 513), make([]byte, 513), sense.InvalidFieldInCDB(6, sense.NoBit))
	d.refused(set(0, 5), []byte("abc"), sense.ParameterListLengthError)
	d.refused(set(0x7f, 1), []byte("a"), sense.InvalidFieldInCDB(10, 7))
	fails = errors.New("full")
	d.refused(set(0, 3), []byte("new"), sense.InternalTargetFailure)
	equal(t, d.good(report(0), nil), "0000 0000")
}
