package scsi

import (
	"fmt"
	"testing"

	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// TestShieldedAtomic: atomic writes with tuples and without, of as much as the block
// limits page says, and none whose tuples are wrong.
func TestShieldedAtomic(t *testing.T) {
	for kind := protect.Type1; kind <= protect.Type3; kind++ {
		for _, block := range []int{512, 4096} {
			t.Run(fmt.Sprintf("type %d, %d bytes", kind, block), func(t *testing.T) {
				u := newShieldedUnit(t, kind, block)
				limits := u.i.nexus.LU.Limits()
				most, unit := uint64(limits.MaxAtomic), uint64(limits.AtomicUnit)
				if most == 0 {
					t.Fatal("there are no atomic writes")
				}
				for _, n := range []uint64{unit, most / 2 / unit * unit, most} {
					u.good("WRITE ATOMIC with tuples", u.send(u.cdb(0x9c, 1, 0, 8*unit, n), u.wire(8*unit, n, true), 0))
					u.check(8*unit, n)
					data := u.data[8*unit*uint64(block):][:n*uint64(block)]
					data[0]++
					protect.Generate(kind, block, data, u.tuples[8*unit*protect.TupleSize:], uint32(8*unit))
					u.good("WRITE ATOMIC", u.send(u.cdb(0x9c, 0, 0, 8*unit, n), data, 0))
					u.check(8*unit, n)
				}
				wrong := u.wire(0, unit, false)
				wrong[0] ^= 1
				if s := u.send(u.cdb(0x9c, 1, 0, 0, unit), wrong, 0).c.Sense; s == nil || s.ASC != ASCGuardCheckFailed {
					t.Errorf("found %+v, expected LOGICAL BLOCK GUARD CHECK FAILED", s)
				}
				if s := u.send(u.cdb(0x9c, 1, 0, 0, most+unit), u.wire(0, most+unit, false), 0).c.Sense; s == nil || s.ASC != sense.ASCInvalidFieldInCDB {
					t.Errorf("found %+v of too much, expected INVALID FIELD IN CDB", s)
				}
				u.check(0, 100)
				long := u.send([]byte{0xa3, 0x0c, 2, 0x7f, 0, 15, 9: 64}, nil, 64).in
				if shown := long[1] == 3; shown != (kind == protect.Type2) || shown && long[4+4] != 0xff {
					t.Errorf("WRITE ATOMIC(32) reports %x", long)
				}
			})
		}
	}
}
