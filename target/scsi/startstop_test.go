package scsi

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

var (
	testUnitReady  = []byte{0, 0, 0, 0, 0, 0}
	startUnit      = []byte{0x1b, 0, 0, 0, 1, 0}
	stopUnit       = []byte{0x1b, 0, 0, 0, 0, 0}
	stopImmed      = []byte{0x1b, 1, 0, 0, 0, 0}
	stopNoFlush    = []byte{0x1b, 0, 0, 0, 4, 0}
	ejectUnit      = []byte{0x1b, 0, 0, 0, 2, 0}
	standbyUnit    = []byte{0x1b, 0, 0, 0, 0x30, 0}
	requestsSense  = []byte{0x03, 1, 0, 0, 0xff, 0}
	readCapacityOf = []byte{0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0}
)

func TestStopAndStart(t *testing.T) {
	for _, stop := range [][]byte{stopUnit, stopImmed} {
		d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
		d.good(testUnitReady, nil)
		d.good(stop, nil)
		if !slices.Equal(d.lane.seen, []backstore.Kind{backstore.Flush}) {
			t.Errorf("operations %v, want one flush", d.lane.seen)
		}
		d.refused(testUnitReady, nil, sense.InitializingCommandRequired)
		d.refused([]byte{0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0}, nil, sense.InitializingCommandRequired)
		equal(t, d.good(requestsSense, nil), "72 02 04 02 000000 00")
		d.good(readCapacityOf, nil)
		d.good(stop, nil)
		d.good(startUnit, nil)
		d.good(testUnitReady, nil)
	}
}

func TestStopWithoutFlush(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.good(stopNoFlush, nil)
	if len(d.lane.seen) != 0 {
		t.Errorf("operations %v, want none", d.lane.seen)
	}
	d.refused(testUnitReady, nil, sense.InitializingCommandRequired)
}

func TestStopReportsAFailedFlush(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v", Logger: slog.New(slog.DiscardHandler)})
	d.lane.err = errors.New("no power")
	if r := d.run(stopUnit, nil); r.status != CheckCondition || r.sense.Key != sense.MediumError {
		t.Errorf("status %02x, %+v", r.status, r.sense)
	}
	d.refused(testUnitReady, nil, sense.InitializingCommandRequired)
}

func TestNoEjectNoPowerConditions(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.refused(ejectUnit, nil, sense.InvalidFieldInCDB(4, 1))
	d.refused(standbyUnit, nil, sense.InvalidFieldInCDB(4, 5))
	d.good(testUnitReady, nil)
}
