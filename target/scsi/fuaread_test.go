package scsi

import (
	"testing"

	"lunar/backstore"
)

// TestReadFromTheMedium: a READ with FUA makes what it reads stable first, and
// nothing else.
func TestReadFromTheMedium(t *testing.T) {
	for name, tt := range map[string]struct {
		cdb      []byte
		volatile bool
		flushes  int
	}{
		"FUA":                  {[]byte{0x28, 0x08, 0, 0, 0, 8, 0, 0, 16, 0}, true, 1},
		"FUA on a stable unit": {[]byte{0x28, 0x08, 0, 0, 0, 8, 0, 0, 16, 0}, false, 0},
		"no FUA":               {cdb10(0x28, 0, 8, 16), true, 0},
	} {
		m := newMedium(4 * mib)
		m.info.VolatileCache = tt.volatile
		n := newUnit(t, m, LUConfig{})
		for _, th := range []*thread{prompt(t, m), slow(t, m, 7)} {
			x := th.start(n, tt.cdb, nil, 16*512).finish()
			if x.c.Status != Good || len(x.in) != 16*512 {
				t.Fatalf("%s: status %02x, %d bytes", name, x.c.Status, len(x.in))
			}
		}
		flushes := 0
		for _, op := range m.ops() {
			if op.Kind == backstore.Flush {
				flushes++
				if op.Off != 8*512 || op.Len != 16*512 {
					t.Errorf("%s: a flush of %d bytes at %d, expected what is read", name, op.Len, op.Off)
				}
			}
		}
		if flushes != 2*tt.flushes {
			t.Errorf("%s: %d flushes in two reads, expected %d", name, flushes, 2*tt.flushes)
		}
	}
}

// TestSynchronizeCacheRange: the range goes to the store; all of the unit is
// flushed without one.
func TestSynchronizeCacheRange(t *testing.T) {
	m := newMedium(4 * mib)
	n := newUnit(t, m, LUConfig{})
	blocks := uint64(len(m.mu.bytes) / 512)
	for _, tt := range []struct {
		lba, count uint64
		off, n     int64
	}{
		{0, 0, 0, 0},
		{0, blocks, 0, 0},
		{8, 16, 8 * 512, 16 * 512},
		{0, 1, 0, 512},
		{blocks - 4, 0, int64(blocks-4) * 512, 4 * 512},
	} {
		m.mu.log = nil
		x := prompt(t, m).start(n, cdb16(0x91, 0, tt.lba, tt.count), nil, 0).finish()
		if ops := m.ops(); x.c.Status != Good || len(ops) != 1 || ops[0].Kind != backstore.Flush || ops[0].Off != tt.off || ops[0].Len != tt.n {
			t.Errorf("%d blocks at %d: status %02x, operations %+v: expected a flush of %d bytes at %d", tt.count, tt.lba, x.c.Status, ops, tt.n, tt.off)
		}
	}
}
