package scsi

import (
	"testing"

	"lunar/target/scsi/sense"
)

func TestRequestSense(t *testing.T) {
	fixed, descriptor := []byte{0x03, 0, 0, 0, 0xff, 0}, []byte{0x03, 1, 0, 0, 0xff, 0}
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	equal(t, d.good(fixed, nil), "70 00 00 00000000 0a 00000000 0000 00 000000")
	equal(t, d.good(descriptor, nil), "72 00 00 00 000000 00")

	d.nexus.Attention(sense.ASCModeParametersChanged)
	d.nexus.Attention(sense.ASCCapacityChanged)
	equal(t, d.good(fixed, nil), "70 00 06 00000000 0a 00000000 2a01 00 000000")
	equal(t, d.good(descriptor, nil), "72 06 2a 09 000000 00")
	equal(t, d.good(fixed, nil), "70 00 00 00000000 0a 00000000 0000 00 000000")
	d.refused([]byte{0x03, 2, 0, 0, 0xff, 0}, nil, sense.InvalidFieldInCDB(1, 1))
}

func TestRequestSenseWithoutLU(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	r := d.runAs(&Nexus{}, []byte{0x03, 0, 0, 0, 0xff, 0}, nil)
	if r.status != Good {
		t.Fatalf("status %02x", r.status)
	}
	equal(t, r.data, "70 00 05 00000000 0a 00000000 2500 00 000000")
}
