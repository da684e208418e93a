package scsi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

func removableDisk(t *testing.T) *disk {
	return newDisk(t, diskInfo(), LUConfig{Name: "v", Removable: true})
}

var (
	loadUnit      = []byte{0x1b, 0, 0, 0, 3, 0}
	preventUnit   = []byte{0x1e, 0, 0, 0, 1, 0}
	allowUnit     = []byte{0x1e, 0, 0, 0, 0, 0}
	readCapacityL = append([]byte{0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 32, 0, 0)
)

// TestEject: without its medium a unit knows what it is, but not what it has.
func TestEject(t *testing.T) {
	d := removableDisk(t)
	other := d.attach()
	if got := d.good([]byte{0x12, 0, 0, 0, 0xff, 0}, nil); got[1] != 0x80 {
		t.Errorf("RMB: %02x", got[1])
	}
	d.good(ejectUnit, nil)
	for _, cdb := range [][]byte{testUnitReady, readCapacityOf, readCapacityL, cdb10(0x28, 0, 0, 1), cdb10(0x35, 0, 0, 0)} {
		d.refused(cdb, nil, sense.MediumNotPresent)
	}
	equal(t, d.good(requestsSense, nil), "72 02 3a 00 000000 00")
	d.lu.ResetState()
	d.refused(testUnitReady, nil, sense.MediumNotPresent)
	d.good(loadUnit, nil)
	d.good(testUnitReady, nil)
	if r := d.runAs(other, testUnitReady, nil); r.sense.ASC != sense.ASCMediumMayHaveChanged {
		t.Errorf("another initiator finds %+v", r.sense)
	}
	// Neither power conditions nor a stop eject anything.
	for _, cdb := range [][]byte{standbyUnit, {0x1b, 1, 0, 0, 0x12, 0}, stopUnit} {
		d.good(cdb, nil)
		d.good(testUnitReady, nil)
	}
}

// TestPreventRemoval: each initiator prevents it until it is gone or the unit
// is reset.
func TestPreventRemoval(t *testing.T) {
	d := removableDisk(t)
	other := d.attach()
	d.good(preventUnit, nil)
	if r := d.runAs(other, ejectUnit, nil); r.sense != *sense.MediumRemovalPrevented {
		t.Errorf("EJECT by another initiator: %02x %+v", r.status, r.sense)
	}
	d.runAs(other, allowUnit, nil)
	d.refused(ejectUnit, nil, sense.MediumRemovalPrevented)
	d.good(allowUnit, nil)
	d.good(ejectUnit, nil)
	d.good(loadUnit, nil)
	d.runAs(other, testUnitReady, nil)
	d.runAs(other, preventUnit, nil)
	d.lu.Detach(other)
	d.good(ejectUnit, nil)
	d.good(loadUnit, nil)
	d.good(preventUnit, nil)
	d.lu.ResetState()
	d.good(ejectUnit, nil)
}

func TestPreventNeedsARemovableMedium(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.refused(preventUnit, nil, sense.InvalidOpcode)
}

// TestBuffers: what is written can be read again, by who has written it.
func TestBuffers(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	read := func(mode, id byte, off, n int) []byte {
		return []byte{0x3c, mode, id, byte(off >> 16), byte(off >> 8), byte(off), byte(n >> 16), byte(n >> 8), byte(n), 0}
	}
	write := func(mode byte, off int, list []byte) []byte {
		return []byte{0x3b, mode, 0, 0, byte(off >> 8), byte(off), 0, byte(len(list) >> 8), byte(len(list)), 0}
	}
	d.refused(read(bufferEcho, 0, 0, 10), nil, sense.CommandSequenceError)
	echo := []byte("what goes there comes back")
	d.good(write(bufferEcho, 0, echo), echo)
	if got := d.good(read(bufferEcho, 0, 0, 4096), nil); !bytes.Equal(got, echo) {
		t.Errorf("echo %q", got)
	}
	equal(t, d.good(read(bufferEchoDescriptor, 0, 0, 4), nil), "00 00 1000")
	equal(t, d.good(read(bufferDescriptor, 0, 0, 4), nil), "00 00 1000")
	equal(t, d.good(read(bufferDescriptor, 1, 0, 4), nil), "00 00 0000")
	d.good(write(bufferData, 4090, echo[:6]), echo[:6])
	if got := d.good(read(bufferData, 0, 4088, 100), nil); !bytes.Equal(got, append([]byte{0, 0}, echo[:6]...)) {
		t.Errorf("data %q", got)
	}
	d.refused(write(bufferData, 4091, echo[:6]), echo[:6], sense.InvalidFieldInCDB(6, 7))
	d.refused(write(0x05, 0, echo), echo, sense.InvalidFieldInCDB(1, 4)) // microcode
	d.refused(read(bufferData, 1, 0, 1), nil, sense.InvalidFieldInCDB(2, 7))
	if r := d.runAs(d.attach(), read(bufferEcho, 0, 0, 10), nil); r.sense != *sense.CommandSequenceError {
		t.Errorf("the echo of another initiator: %02x %q", r.status, r.data)
	}
}

func TestDefectLists(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	equal(t, d.good([]byte{0x37, 0, 0x1d, 0, 0, 0, 0, 0, 32, 0}, nil), "00 1d 0000")
	equal(t, d.good([]byte{0xb7, 0x0c, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0}, nil), "00 0c 0000 00000000")
}

func TestTimestamp(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	other := d.attach()
	report := []byte{0xa3, 0x0f, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0}
	if got := d.good(report, nil); len(got) != 12 || got[1] != 10 || got[2] != 0 || got[4] != 0 {
		t.Errorf("since power on: % x", got)
	}
	list := []byte{0, 0, 0, 0, 0x01, 0x90, 0x12, 0x34, 0x00, 0x00, 0, 0}
	d.good([]byte{0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0}, list)
	if got := d.good(report, nil); got[2] != 2 || !bytes.Equal(got[4:8], list[4:8]) {
		t.Errorf("after it was set: % x", got)
	}
	if r := d.runAs(other, testUnitReady, nil); r.sense.ASC != sense.ASCTimestampChanged {
		t.Errorf("another initiator: %+v", r.sense)
	}
	d.refused([]byte{0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0}, list[:11], sense.ParameterListLengthError)
}

func TestDiagnostics(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	equal(t, d.good([]byte{0x1c, 0, 0, 0, 255, 0}, nil), "00 00 0001 00")
	equal(t, d.good([]byte{0x1c, 1, 0, 0, 255, 0}, nil), "00 00 0001 00")
	d.refused([]byte{0x1c, 1, 0x40, 0, 255, 0}, nil, sense.InvalidFieldInCDB(2, 7))
	d.good([]byte{0x1d, 0x10, 0, 0, 4, 0}, []byte{0, 0, 0, 0})
	d.refused([]byte{0x1d, 0x10, 0, 0, 4, 0}, []byte{1, 0, 0, 0}, sense.InvalidFieldInList(0, sense.NoBit))
	d.refused([]byte{0x1d, 0x20, 0, 0, 0, 0}, nil, sense.InvalidFieldInCDB(1, 7)) // in the background
}

// TestSelfTest: it says whether the medium can be flushed and read.
func TestSelfTest(t *testing.T) {
	m := newMedium(1 << 20)
	n, th := newUnit(t, m, LUConfig{Name: "v"}), newThread(t, m, 1)
	for _, cdb := range [][]byte{{0x1d, 0x04, 0, 0, 0, 0}, {0x1d, 0xa0, 0, 0, 0, 0}, {0x1d, 0xc0, 0, 0, 0, 0}} {
		if x := th.start(n, cdb, nil, 0).finish(); x.c.Status != Good {
			t.Errorf("CDB % x: %+v", cdb, x.c.Sense)
		}
	}
	m.fail = func(op *backstore.Op) error {
		if op.Kind == backstore.Read && op.Off > 0 {
			return errors.New("broken")
		}
		return nil
	}
	if x := th.start(n, []byte{0x1d, 0x04, 0, 0, 0, 0}, nil, 0).finish(); x.c.Sense == nil || *x.c.Sense != *sense.SelfTestFailed {
		t.Errorf("of a broken medium: %+v", x.c.Sense)
	}
}

// TestPrefetch: CONDITION MET says that the cache has the blocks.
func TestPrefetch(t *testing.T) {
	m := newMedium(1 << 20)
	n, th := newUnit(t, m, LUConfig{Name: "v"}), newThread(t, m, 1)
	for lends, want := range map[int]Status{100: ConditionMet, 0: Good} {
		th.lends = lends
		for _, cdb := range [][]byte{cdb10(0x34, 0, 5, 1500), cdb16(0x90, 2, 5, 0)} {
			if x := th.start(n, cdb, nil, 0).finish(); x.c.Status != want {
				t.Errorf("CDB % x: %02x %+v, expected %02x", cdb, x.c.Status, x.c.Sense, want)
			}
		}
	}
	m.fail = func(*backstore.Op) error { return errors.New("broken") }
	if x := th.start(n, cdb10(0x34, 0, 5, 1), nil, 0).finish(); x.c.Status != CheckCondition {
		t.Errorf("of a broken medium: %02x", x.c.Status)
	}
}

func logCDB(page byte, pointer uint16) []byte {
	return []byte{0x4d, 0, 0x40 | page, 0, 0, byte(pointer >> 8), byte(pointer), 1, 0, 0}
}

// spacedStore is an infoStore with space.
type spacedStore struct {
	infoStore
	space *backstore.Space
}

func (s spacedStore) Space() (backstore.Space, error) { return *s.space, nil }

func TestLogPages(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	equal(t, d.good(logCDB(0x00, 0), nil), "00 00 0003 00 0e 2f")
	d.good(stopUnit, nil)
	d.good(startUnit, nil)
	equal(t, d.good(logCDB(0x0e, 0), nil), "0e 00 0008 0004 03 04 00000001")
	equal(t, d.good(logCDB(0x0e, 4), nil), "0e 00 0008 0004 03 04 00000001")
	d.refused(logCDB(0x0e, 5), nil, sense.InvalidFieldInCDB(5, sense.NoBit))
	equal(t, d.good(logCDB(0x2f, 0), nil), "2f 00 0008 0000 03 04 00 00 ff 00")
	d.refused(logCDB(0x0c, 0), nil, sense.InvalidFieldInCDB(2, 5)) // the store does not know
	d.refused(logCDB(0x0d, 0), nil, sense.InvalidFieldInCDB(2, 5)) // nothing has a temperature
	d.refused([]byte{0x4d, 0, 0, 0, 0, 0, 0, 1, 0, 0}, nil, sense.InvalidFieldInCDB(2, 7))
}

// warmStore is an infoStore with a temperature.
type warmStore struct {
	infoStore
	celsius *int
}

func (s warmStore) Temperature() (int, error) {
	if *s.celsius > 900 {
		return 0, errors.New("broken")
	}
	return *s.celsius, nil
}

func TestTemperature(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	celsius := 0
	d.lu.store = warmStore{infoStore{diskInfo()}, &celsius}
	d.lu.traits.Load().warm = true
	equal(t, d.good(logCDB(0x00, 0), nil), "00 00 0004 00 0d 0e 2f")
	for _, tt := range []struct {
		celsius int
		want    string
	}{{41, "29"}, {-7, "00"}, {300, "fe"}, {999, "ff"}} {
		celsius = tt.celsius
		equal(t, d.good(logCDB(0x0d, 0), nil), "0d 00 000c 0000 03 02 00 "+tt.want+" 0001 03 02 00 ff")
	}
	equal(t, d.good(logCDB(0x0d, 1), nil), "0d 00 0006 0001 03 02 00 ff")
	d.refused([]byte{0x4d, 0, 0x4d, 1, 0, 0, 0, 1, 0, 0}, nil, sense.InvalidFieldInCDB(2, 5)) // a subpage
	d.refused(logCDB(0x0d, 2), nil, sense.InvalidFieldInCDB(5, sense.NoBit))
}

// TestSoftThreshold: initiators are told once that space runs out, and again
// after there was more.
func TestSoftThreshold(t *testing.T) {
	info := diskInfo()
	info.Thin = true
	space := &backstore.Space{Used: 3<<20 + 1, Available: 100 << 20}
	d := newDisk(t, info, LUConfig{Name: "v"})
	d.lu.store = spacedStore{infoStore{info}, space}
	d.lu.space.known.Store(true)
	d.lu.space.threshold.Store(50 << 20)
	equal(t, d.good(logCDB(0x0c, 0), nil), `0c 00 0018
		0001 03 08 00000064 02000000
		0002 03 08 00000004 01000000`)
	if got := d.good([]byte{0x12, 1, 0xb2, 0, 0xff, 0}, nil); got[4] != 11 {
		t.Errorf("THRESHOLD EXPONENT %d", got[4])
	}
	const page = "5c 02 0014 00 0000000000000000000000 80 01 0000 00000032"
	equal(t, d.good(modeSense6(dbd, 0x1c, 2), nil), "1b 00 10 00"+page)
	equal(t, d.good(modeSense6(dbd, changeable|0x1c, 2), nil), "1b 00 10 00 5c 02 0014"+hex.EncodeToString(make([]byte, 20)))
	equal(t, d.good(modeSense6(dbd, 0x3f, 0xff), nil), "73 00 10 00"+goldenSubpages+page)
	list := append([]byte{0, 0, 0, 0}, unhex(t, page)...)
	d.good([]byte{0x15, 0x10, 0, 0, byte(len(list)), 0}, list)
	list[4+23] = 0x31
	d.refused([]byte{0x15, 0x10, 0, 0, byte(len(list)), 0}, list, sense.InvalidFieldInList(4+23, 1))
	for _, step := range []struct {
		available int64
		told      bool
	}{{50 << 20, false}, {50<<20 - 1, true}, {10 << 20, false}, {60 << 20, false}, {1, true}} {
		space.Available = step.available
		d.lu.lookAtSpace()
		r := d.run(testUnitReady, nil)
		if told := r.sense.ASC == sense.ASCSoftThresholdReached; told != step.told {
			t.Errorf("%d bytes available: %+v", step.available, r.sense)
		}
	}
}
