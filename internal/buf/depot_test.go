package buf

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestDepotGrowsAndShrinks: it has what is asked for up to its bound, uses emptied pools
// again, and keeps no more of them than it may.
func TestDepotGrowsAndShrinks(t *testing.T) {
	const most, spare = 8 * shelfSize, 2 * shelfSize
	d := NewDepot(most, spare, -1)
	for range 3 {
		var all []*Ref
		for {
			ref := d.Get(shelfSize / 4)
			if ref == nil {
				break
			}
			all = append(all, ref)
		}
		if len(all) != 4*most/shelfSize || d.Size() != most || d.InUse() != len(all) {
			t.Fatalf("%d buffers in %d bytes, expected %d in %d", len(all), d.Size(), 4*most/shelfSize, most)
		}
		for i, ref := range all {
			ref.Bytes()[0] = byte(i)
		}
		for i, ref := range all {
			if ref.Bytes()[0] != byte(i) {
				t.Fatal("two buffers share memory")
			}
			ref.Release()
		}
		if d.Size() != most || d.InUse() != 0 {
			t.Fatalf("%d bytes are left with %d buffers in use, expected all %d", d.Size(), d.InUse(), most)
		}
		for range 2 + most/shelfSize { // the first knows nothing of the time before
			if !d.Trim() {
				break
			}
		}
		if d.Size() != spare {
			t.Fatalf("%d bytes are left in the end, expected %d", d.Size(), spare)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		ref := d.Get(8192)
		ref.Release()
	}); n != 0 {
		t.Errorf("%v allocations, expected none", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestDepotModel: whatever is taken and given back, buffers are apart, and the memory is
// that of pools with something in them, and the spare ones.
func TestDepotModel(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 13))
	const most, spare = 16 * shelfSize, shelfSize
	peak := 0 // pools with something in them, the most since the last Trim
	d := NewDepot(most, spare, -1)
	var all []*Ref
	for range 4000 {
		if random.IntN(100) < 50 {
			if ref := d.Get(1 << (10 + random.IntN(9))); ref != nil {
				copy(ref.Bytes(), bytes.Repeat([]byte{byte(ref.page)}, len(ref.Bytes())))
				all = append(all, ref)
			}
		} else if len(all) > 0 {
			i := random.IntN(len(all))
			ref := all[i]
			if b := ref.Bytes(); bytes.Count(b, []byte{byte(ref.page)}) != len(b) {
				t.Fatal("two buffers share memory")
			}
			ref.Release()
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
		used := map[*Pool]bool{}
		for _, ref := range all {
			used[ref.pool] = true
		}
		if peak = max(peak, len(used)); random.IntN(50) == 0 {
			before := d.Size()
			d.Trim()
			if want := max(before-shelfSize, min(before, peak*shelfSize+spare)); d.Size() != want {
				t.Fatalf("%d bytes after Trim, expected %d of %d", d.Size(), want, before)
			}
			peak = len(used)
		}
		if d.InUse() != len(all) || d.Size() > most || d.Size() < len(used)*shelfSize {
			t.Fatalf("%d buffers, %d in use, in %d bytes; %d pools have some", len(all), d.InUse(), d.Size(), len(used))
		}
	}
	for _, ref := range all {
		ref.Release()
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkDepotGrows: what a new pool costs the thread that needs it.
func BenchmarkDepotGrows(b *testing.B) {
	b.SetBytes(shelfSize)
	for b.Loop() {
		d := NewDepot(shelfSize, 0, -1)
		d.Get(PageSize).Release()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
