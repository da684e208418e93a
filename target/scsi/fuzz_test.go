package scsi

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"lunar/target/scsi/sense"
)

// FuzzExecute runs any CDB with any Data-Out: it ends exactly once with a
// status, leaks nothing, does not panic, and leaves the medium alone unless it
// is a write within its extent.
func FuzzExecute(f *testing.F) {
	for _, tt := range largeCommands() {
		f.Add(tt.cdb, tt.out[:min(len(tt.out), 4096)], uint32(4096), uint64(1))
	}
	for _, row := range commands {
		f.Add(row.Usage[:row.Length], bytes.Repeat([]byte{0xa5}, 512), uint32(512), uint64(2))
	}
	m := newMedium(mib)
	th := slow(f, m, 0)
	f.Fuzz(func(t *testing.T, cdb, out []byte, in uint32, seed uint64) {
		m.mu.log = m.mu.log[:0]
		n := newUnit(t, m, LUConfig{Name: "v"})
		th.t, th.rng = t, rand.New(rand.NewPCG(seed, 1))
		x := th.start(n, cdb, out, in%(2*mib)).finish()
		checkGuardFree(t, n.LU)
		if (x.c.Status == CheckCondition) != (x.c.Sense != nil) {
			t.Fatalf("status %02x with sense %+v", x.c.Status, x.c.Sense)
		}
		checkExtent(t, m, x.c)
	})
}

// checkExtent checks that nothing outside of the command's extent changed. Only
// UNMAP has more than one, and SANITIZE none.
func checkExtent(t *testing.T, m *medium, c *Command) {
	from, to := int64(0), int64(0)
	row := c.Row()
	switch {
	case row != nil && (row.Name == "UNMAP" || row.Opcode == 0x48): // SANITIZE is about all of it
		return
	case row != nil && row.Access == AccessWrite:
		from = int64(c.lba) * 512
		to = from + int64(c.count)*512
	}
	for _, op := range m.ops() {
		if changes(op.Kind) && (op.Off < from || op.Off+op.Len > to) {
			t.Fatalf("%s changed %d bytes at %d", row.Name, op.Len, op.Off)
		}
	}
}

// FuzzUnmapList runs UNMAP with any parameter list: what it releases, it is
// allowed to.
func FuzzUnmapList(f *testing.F) {
	f.Add(unmapList([2]uint64{0, 1}, [2]uint64{2047, 1}))
	f.Add(unmapList([2]uint64{1 << 63, 1 << 31}))
	f.Add([]byte{0, 6, 0xff, 0xff, 0, 0, 0, 0})
	m := newMedium(mib)
	n := newUnit(f, m, LUConfig{})
	th := slow(f, m, 0)
	f.Fuzz(func(t *testing.T, list []byte) {
		list = list[:min(len(list), 1<<16-1)]
		m.mu.log, th.t = m.mu.log[:0], t
		x := th.start(n, unmapCDB(list), list, 0).finish()
		if x.c.Status != Good && x.c.Sense.Key != sense.IllegalRequest {
			t.Fatalf("status %02x, sense %+v", x.c.Status, x.c.Sense)
		}
	})
}
