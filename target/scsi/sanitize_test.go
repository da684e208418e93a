package scsi

import (
	"bytes"
	"errors"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

func sanitizeCDB(action byte, list []byte) []byte {
	return []byte{0x48, action, 0, 0, 0, 0, 0, byte(len(list) >> 8), byte(len(list)), 0}
}

// overwriteList asks for passes with a pattern.
func overwriteList(count byte, pattern ...byte) []byte {
	return append([]byte{count, 0, byte(len(pattern) >> 8), byte(len(pattern))}, pattern...)
}

// sanitizeUnit has a medium full of something.
func sanitizeUnit(t *testing.T, seed uint64) (*thread, *Nexus, *medium) {
	m := newMedium(1<<20 + 4096)
	n := newUnit(t, m, LUConfig{Name: "v"})
	th := newThread(t, m, seed)
	copy(m.mu.bytes, th.fresh(len(m.mu.bytes)))
	return th, n, m
}

// finishAll lets everything happen that there is, in the background too.
func (th *thread) finishAll() {
	for th.turn() {
	}
}

// TestSanitizeOverwrite: every block holds the pattern, as often as it fits,
// inverted after an even number of passes, and all of it is stable.
func TestSanitizeOverwrite(t *testing.T) {
	for _, tt := range []struct {
		count byte
		first byte
	}{{1, 0xa5}, {0x82, 0x5a}, {0x83, 0xa5}} {
		th, n, m := sanitizeUnit(t, uint64(tt.count))
		list := overwriteList(tt.count, 0xa5, 0xa5, 0xa5)
		x := th.start(n, sanitizeCDB(0x01, list), list, 0)
		th.finishAll()
		if x.ends != 1 || x.c.Status != Good {
			t.Fatalf("ended %d times, status %02x", x.ends, x.c.Status)
		}
		if !bytes.Equal(m.mu.bytes, bytes.Repeat([]byte{tt.first}, len(m.mu.bytes))) {
			t.Errorf("count %02x: not overwritten", tt.count)
		}
		if m.mu.flushes != int(tt.count&0x1f) {
			t.Errorf("count %02x: %d flushes", tt.count, m.mu.flushes)
		}
		if n.LU.State().Sanitize != nil {
			t.Error("the medium is not there again")
		}
	}
}

// TestSanitizePatternBeginsInEachBlock: a pattern that does not divide a block.
func TestSanitizePatternBeginsInEachBlock(t *testing.T) {
	th, n, m := sanitizeUnit(t, 1)
	list := overwriteList(1, 1, 2, 3)
	th.start(n, sanitizeCDB(0x01, list), list, 0)
	th.finishAll()
	for at := 0; at < len(m.mu.bytes); at += 512 {
		if !bytes.Equal(m.mu.bytes[at:at+4], []byte{1, 2, 3, 1}) {
			t.Fatalf("block %d begins with % x", at/512, m.mu.bytes[at:at+4])
		}
	}
}

func TestSanitizeBlockErase(t *testing.T) {
	th, n, m := sanitizeUnit(t, 1)
	x := th.start(n, sanitizeCDB(0x82, nil), nil, 0) // IMMED
	if x.ends != 1 || x.c.Status != Good {
		t.Fatalf("ended %d times, status %02x", x.ends, x.c.Status)
	}
	th.finishAll()
	ops := m.ops()
	if !isZero(m.mu.bytes) || ops[len(ops)-2].Kind != backstore.Discard || ops[0].Kind != backstore.Wipe || ops[1].Kind != backstore.Write {
		t.Errorf("operations %v", ops)
	}
}

// TestSanitizeShutsOthersOut: nothing is done to the medium during it, not even
// what was asked for before.
func TestSanitizeShutsOthersOut(t *testing.T) {
	th, n, m := sanitizeUnit(t, 7)
	th.defers, th.late = 100, 100
	write := th.start(n, cdb10(0x2a, 0, 0, 16), bytes.Repeat([]byte{9}, 16*512), 0)
	list := overwriteList(1, 7)
	x := &exchange{thread: th, out: list, c: new(Command)}
	x.begin(n, sanitizeCDB(0x81, list), 0)
	for x.ends == 0 {
		th.turn()
	}
	for cdb, want := range map[string]*sense.Data{
		string(testUnitReady):        {Key: sense.NotReady, ASC: sense.ASCSanitizeInProgress, ProgressValid: true},
		string(startUnit):            {Key: sense.NotReady, ASC: sense.ASCSanitizeInProgress, ProgressValid: true},
		string(cdb10(0x28, 0, 0, 1)): {Key: sense.NotReady, ASC: sense.ASCSanitizeInProgress, ProgressValid: true},
	} {
		y := th.start(n, []byte(cdb), nil, 512)
		if y.c.Sense == nil || y.c.Sense.Key != want.Key || y.c.Sense.ASC != want.ASC || !y.c.Sense.ProgressValid {
			t.Errorf("CDB % x: %+v", cdb, y.c.Sense)
		}
	}
	if y := th.start(n, []byte{0x12, 0, 0, 0, 96, 0}, nil, 96); y.c.Status != Good {
		t.Errorf("INQUIRY: %+v", y.c.Sense)
	}
	n.LU.ResetState()
	if n.LU.State().Sanitize == nil {
		t.Error("a reset has ended it")
	}
	th.finishAll()
	if write.ends != 1 || !bytes.Equal(m.mu.bytes, bytes.Repeat([]byte{7}, len(m.mu.bytes))) {
		t.Errorf("the write ended %d times with %02x: %+v", write.ends, write.c.Status, write.c.Sense)
	}
}

// TestSanitizeGoesOnWithoutItsInitiator: the command that waits is aborted.
func TestSanitizeGoesOnWithoutItsInitiator(t *testing.T) {
	th, n, m := sanitizeUnit(t, 7)
	th.defers = 100
	list := overwriteList(1, 7)
	x := th.start(n, sanitizeCDB(0x01, list), list, 0)
	for n.LU.State().Sanitize == nil {
		th.turn()
	}
	if !x.c.Abort() {
		t.Error("the command waits for its operation")
	}
	x.ends++
	th.finishAll()
	if !bytes.Equal(m.mu.bytes, bytes.Repeat([]byte{7}, len(m.mu.bytes))) {
		t.Error("not overwritten")
	}
}

// TestSanitizeFails: the unit is of no use until it succeeds, or its failure is
// given up where that was allowed.
func TestSanitizeFails(t *testing.T) {
	for _, allowed := range []byte{0, sanitizeExit} {
		th, n, m := sanitizeUnit(t, 7)
		m.fail = func(op *backstore.Op) error { return errors.New("broken") }
		list := overwriteList(1, 7)
		x := th.start(n, sanitizeCDB(0x01|allowed, list), list, 0)
		th.finishAll()
		if x.ends != 1 || x.c.Sense == nil || *x.c.Sense != *sense.SanitizeFailed {
			t.Fatalf("ended %d times with %+v", x.ends, x.c.Sense)
		}
		m.fail = nil
		if y := th.start(n, testUnitReady, nil, 0); y.c.Sense == nil || *y.c.Sense != *sense.SanitizeFailed {
			t.Errorf("TEST UNIT READY: %+v", y.c.Sense)
		}
		want := Good
		if allowed == 0 {
			want = CheckCondition
		}
		if y := th.start(n, sanitizeCDB(0x1f, nil), nil, 0); y.c.Status != want {
			t.Errorf("EXIT FAILURE MODE with AUSE=%02x: %02x", allowed, y.c.Status)
		}
		th.start(n, sanitizeCDB(0x01, list), list, 0)
		th.finishAll()
		if y := th.start(n, testUnitReady, nil, 0); y.c.Status != Good {
			t.Errorf("TEST UNIT READY after all: %+v", y.c.Sense)
		}
	}
}

// TestSanitizeFailsAgain: an operation for which there is no room leaves a unit whose
// sanitize operation has failed as it was.
func TestSanitizeFailsAgain(t *testing.T) {
	th, n, m := sanitizeUnit(t, 9)
	m.fail = func(op *backstore.Op) error { return errors.New("broken") }
	list := overwriteList(1, 7)
	th.start(n, sanitizeCDB(0x01, list), list, 0)
	th.finishAll()
	th.refuses = true
	if x := th.start(n, sanitizeCDB(0x01, list), list, 0); x.ends != 1 || x.c.Sense == nil || *x.c.Sense != *sense.InsufficientResources {
		t.Fatalf("ended %d times with %+v", x.ends, x.c.Sense)
	}
	if y := th.start(n, testUnitReady, nil, 0); y.c.Sense == nil || *y.c.Sense != *sense.SanitizeFailed {
		t.Errorf("TEST UNIT READY: %+v", y.c.Sense)
	}
}

func TestSanitizeRefused(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	for _, list := range [][]byte{{1, 0, 0, 1}, append([]byte{1, 0, 2, 1}, make([]byte, 513)...)} {
		d.refused(sanitizeCDB(0x01, list), list, sense.InvalidFieldInCDB(7, sense.NoBit))
	}
	d.refused(sanitizeCDB(0x01, make([]byte, 8)), make([]byte, 8), sense.InvalidFieldInList(0, 4)) // OVERWRITE COUNT
	d.refused(sanitizeCDB(0x01, make([]byte, 8)), []byte{0x21, 0, 0, 4, 0, 0, 0, 0}, sense.InvalidFieldInList(0, 6))
	d.refused(sanitizeCDB(0x01, make([]byte, 8)), []byte{1, 0, 0, 0, 0, 0, 0, 0}, sense.InvalidFieldInList(2, sense.NoBit))
	d.refused(sanitizeCDB(0x01, make([]byte, 8)), []byte{1, 0, 0, 5, 0, 0, 0, 0}, sense.ParameterListLengthError)
	d.refused(sanitizeCDB(0x02, make([]byte, 8)), nil, sense.InvalidFieldInCDB(8, 3))
	d.refused(sanitizeCDB(0x03, nil), nil, sense.InvalidFieldInCDB(1, 4)) // CRYPTO ERASE: nothing is encrypted
	d.good(sanitizeCDB(0x1f, nil), nil)
	readOnly := newDisk(t, diskInfo(), LUConfig{Name: "v", ReadOnly: true})
	readOnly.refused(sanitizeCDB(0x02, nil), nil, sense.WriteProtected)
}
