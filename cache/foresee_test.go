package cache

import "testing"

// TestForeseenBlock: what Foresee has fetched is the block that a lookup finds, and for one
// that is not there it fetches nothing.
func TestForeseenBlock(t *testing.T) {
	p, err := NewPartition(Config{Slots: 200, BlockSize: 4096, LUs: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for n := range uint64(400) {
		k := Key{1, n}
		if n < 200 {
			p.EndFill(p.Read(k, 1, nil).Slot, 1, 0, nil)
		}
		slot := p.foreseen(k)
		if slot != NoSlot {
			found++
		}
		if want := p.index.find(p.blocks, k, k.hash()); slot != want && slot != NoSlot {
			t.Errorf("block %d: found %d, expected %d or nothing", n, slot, want)
		}
		for step := range 2 {
			p.Foresee(k, step)
			p.Foresee(Key{^uint32(0), ^uint64(0) - n}, step)
		}
	}
	if found < 180 || found > 200 {
		t.Errorf("%d of 200 blocks were found, expected nearly all", found)
	}
}
