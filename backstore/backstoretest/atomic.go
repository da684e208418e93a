package backstoretest

import (
	"testing"

	"lunar/backstore"
)

// testAtomic: what Info says of writes with Atomic is what is taken and what is
// refused.
func testAtomic(t *testing.T, s Subject) {
	store, c := s.open(t)
	info := store.Info()
	write := func(off int64, n int) error {
		data := Pattern(n, uint64(off))
		err := c.Do(backstore.Op{Kind: backstore.Write, FUA: true, Atomic: true, Off: off, Data: data})
		if err == nil {
			s.expect(t, c, off, s.kept(data))
		}
		return err
	}
	if info.MaxAtomic == 0 {
		if write(0, page) == nil {
			t.Error("a store without atomic writes took one")
		}
		return
	}
	most, unit := min(info.MaxAtomic, Size/2), info.AtomicUnit
	for _, off := range []int64{0, int64(unit) * 3, Size - int64(most)} {
		for _, n := range []int{unit, 2 * unit, most} {
			if n > most || n%max(info.BlockSize, 1) != 0 || off%int64(max(info.BlockSize, 1)) != 0 {
				continue
			}
			if err := write(off, n); err != nil {
				t.Errorf("%d bytes at %d: %v", n, off, err)
			}
		}
	}
	if unit > 1 && (write(int64(unit)/2, unit) == nil || write(0, unit/2) == nil) {
		t.Errorf("something else than multiples of %d was written", unit)
	}
	if most == info.MaxAtomic && write(0, most+unit) == nil {
		t.Errorf("more than %d bytes were written", most)
	}
	if err := write(Size-int64(unit), 2*unit); err == nil {
		t.Error("written beyond the end")
	}
	c.Must(t, backstore.Op{Kind: backstore.Wipe})
}
