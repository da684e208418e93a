package scsi

import "testing"

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
