package target_test

import (
	"encoding/binary"
	"testing"

	"lunar/internal/initiator"
	"lunar/internal/refusals"
)

// TestBackgroundsAreShared: one who has begun all the background copies that he may
// leaves some for others.
func TestBackgroundsAreShared(t *testing.T) {
	r := newCopyRig(t)
	r.begin()
	from, to := naaCSCD(t, r.conn, 0), naaCSCD(t, r.conn, 1)
	copies := func(c *initiator.Conn, most int) (n int) {
		for n < most {
			command := immediateCopy(from, to, 2048)
			binary.BigEndian.PutUint32(command.Out[20:], uint32(100+n))
			res, err := c.Do(command)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != 0 {
				if key, asc, ascq := res.SenseKey(); [3]byte{key, asc, ascq} != [3]byte{0x0b, 0x55, 0x03} {
					t.Fatalf("sense %x %x %x, expected INSUFFICIENT RESOURCES", key, asc, ascq)
				}
				break
			}
			n++
		}
		return n
	}
	if n := copies(r.conn, 20); n != 7 {
		t.Errorf("%d more copies, expected 7: 8 of 16", n)
	}
	other, err := r.loginFrom(host, nth(1))
	if err != nil {
		t.Fatal(err)
	}
	testUnitReady(t, other, 0)
	testUnitReady(t, other, 1)
	if n := copies(other, 20); n != 4 {
		t.Errorf("%d copies of another address, expected 4", n)
	}
	if n := r.refused.Of(refusals.Backgrounds); n != 2 {
		t.Errorf("%d refusals were counted, expected 2", n)
	}
	r.store.SetRules()
	r.store.Release(-1)
}
