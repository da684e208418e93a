package scsi

import (
	"bytes"
	"io"
	"testing"

	"lunar/backstore"
)

// Commands on a medium that takes everything at once leave the thread to
// others in between.
func TestLongCommandsTakeTurns(t *testing.T) {
	const blocks = 8 * mib / 512
	block := make([]byte, 512)
	block[511] = 1
	list := unmapList([2]uint64{0, blocks / 2}, [2]uint64{blocks / 2, blocks / 2})
	for name, tt := range map[string]struct{ cdb, out []byte }{
		"WRITE SAME":   {cdb16(0x93, 0, 0, blocks), block},
		"VERIFY":       {cdb16(0x8f, 0, 0, blocks), nil},
		"VERIFY block": {cdb16(0x8f, 6, 0, blocks), make([]byte, 512)},
		"UNMAP":        {unmapCDB(list), list},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium(8 * mib)
			th := newThread(t, m, 1)
			x := th.start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, 0)
			done := int64(0)
			for _, op := range m.ops() {
				done += op.Len
			}
			if x.ends > 0 || done > maxInline+4*mib {
				t.Errorf("%d bytes in the first turn, %d ends, expected little more than %d", done, x.ends, maxInline)
			}
			if x.finish(); x.c.Status != Good {
				t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
			}
		})
	}
}

// TestPartsInTurns: where a turn is short, an operation that the medium does at once is
// done in parts, a turn for each, and the command is as if it had been done whole.
func TestPartsInTurns(t *testing.T) {
	const size, part = 256 << 10, 64 << 10
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i / 4096)
	}
	m := newMedium(mib)
	th := newThread(t, m, 1)
	th.part, th.late = part, 100
	lu := newUnit(t, m, LUConfig{})
	longest := func() (n int64) {
		for _, op := range m.ops() {
			n = max(n, op.Len)
		}
		return n
	}
	x := th.start(lu, cdb16(0x8a, 0, 0, size/512), data, 0)
	x.finish()
	if x.c.Status != Good || !bytes.Equal(m.mu.bytes[:size], data) {
		t.Errorf("WRITE: status %#x, or other data", x.c.Status)
	}
	x = th.start(lu, cdb16(0x88, 0, 0, size/512), nil, size)
	x.finish()
	if x.c.Status != Good || !bytes.Equal(x.in, data) {
		t.Errorf("READ: status %#x, %d bytes, or other data", x.c.Status, len(x.in))
	}
	if n := longest(); n > part {
		t.Errorf("%d bytes at once, expected at most %d", n, part)
	}
}

// TestPartThatFails: what a part that fails leaves behind is the whole operation, whose
// first block the sense data tell.
func TestPartThatFails(t *testing.T) {
	const at, size, part = 512 << 10, 256 << 10, 64 << 10
	for name, opcode := range map[string]byte{"READ": 0x88, "WRITE": 0x8a} {
		for failing := range int64(size / part) {
			m := newMedium(mib)
			m.fail = func(op *backstore.Op) error {
				if op.Off == at+failing*part {
					return io.ErrUnexpectedEOF
				}
				return nil
			}
			th := newThread(t, m, 1)
			th.part, th.late = part, 100
			var out []byte
			in := uint32(size)
			if opcode == 0x8a {
				out, in = make([]byte, size), 0
			}
			x := th.start(newUnit(t, m, LUConfig{}), cdb16(opcode, 0, at/512, size/512), out, in).finish()
			if x.c.Status != CheckCondition || !x.c.Sense.InfoValid || x.c.Sense.Info != at/512 {
				t.Errorf("%s, part %d fails: status %#x, sense %+v, expected a check condition at block %d", name, failing, x.c.Status, x.c.Sense, at/512)
			}
		}
	}
}

// TestPartsAreHitsEach: a command of which the medium has one part at once, and not the
// next, is no hit.
func TestPartsAreHitsEach(t *testing.T) {
	const size, part = 256 << 10, 64 << 10
	for hits, want := range map[int]bool{0: false, 1: false, 3: false, 4: true} {
		m := newMedium(mib)
		asked := 0
		m.fail = func(op *backstore.Op) error {
			if asked++; asked <= hits {
				op.Hit = true
			}
			return nil
		}
		th := newThread(t, m, 1)
		th.part, th.late = part, 100
		x := th.start(newUnit(t, m, LUConfig{}), cdb16(0x88, 0, 0, size/512), nil, size).finish()
		if x.c.Status != Good || x.c.Hit() != want {
			t.Errorf("%d of %d parts are hits: status %#x, hit %v, expected %v", hits, size/part, x.c.Status, x.c.Hit(), want)
		}
	}
}

// TestMovedWithinIsAskedFor: what moves more than the initiator sends or takes is done in
// parts, for each of which the port is asked; what is sent, received or made stable is not.
func TestMovedWithinIsAskedFor(t *testing.T) {
	const size = 8 * mib
	block := make([]byte, 512)
	block[511] = 1
	list := unmapList([2]uint64{0, size / 512})
	for name, tt := range map[string]struct {
		cdb, out []byte
		in       uint32
		longest  int64 // part
		moved    int64
	}{
		"WRITE SAME":        {cdb16(0x93, 0, 0, size/512), block, 0, partWithin, size},
		"WRITE SAME zeroes": {cdb16(0x93, 0, 0, size/512), make([]byte, 512), 0, partReleased, size},
		"VERIFY":            {cdb16(0x8f, 0, 0, size/512), nil, 0, partWithin, size},
		"UNMAP":             {unmapCDB(list), list, 0, partReleased, size},
		"SYNCHRONIZE CACHE": {cdb16(0x91, 0, 8, size/512-8), nil, 0, size, 0},
		"READ":              {cdb16(0x88, 0, 0, 256), nil, 128 << 10, 128 << 10, 0},
		"WRITE":             {cdb16(0x8a, 0, 0, 256), make([]byte, 128<<10), 0, 128 << 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium(size)
			th := newThread(t, m, 1)
			x := th.start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, tt.in).finish()
			if x.c.Status != Good {
				t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
			}
			if th.within != tt.moved {
				t.Errorf("asked for %d bytes, expected %d", th.within, tt.moved)
			}
			for _, op := range m.ops() {
				if op.Len > tt.longest {
					t.Errorf("%v of %d bytes at once, expected at most %d", op.Kind, op.Len, tt.longest)
				}
			}
		})
	}
}
