package cache

import (
	"testing"
	"unsafe"
)

// Whatever lies behind a correct header: it becomes a partition without
// contradictions that can be used, and has what the journal says is dirty.
func FuzzAttach(f *testing.F) {
	c := Config{ID: 1, Slots: 4, BlockSize: subs * 4096, LUs: 3}
	mem := ownMemory(c.Slots)
	p, err := NewPartition(c, mem)
	if err != nil {
		f.Fatal(err)
	}
	head := int(unsafe.Sizeof(header{}))
	f.Add(append([]byte(nil), mem[head:]...))
	for n := range uint64(3) {
		dirtyWrite(p, Key{1, n}, 3)
	}
	p.Read(Key{2, 0}, 1, nil)
	f.Add(append([]byte(nil), mem[head:]...))
	f.Fuzz(func(t *testing.T, records []byte) {
		own := ownMemory(c.Slots)
		copy(own, mem[:head])
		copy(own[head:], records)
		p, _, err := Attach(c, own, []DirtySlot{{2, Key{1, 1}, 2}})
		if err != nil {
			t.Fatal(err)
		}
		if k, mask := p.NextDirty(Key{}, Key{LU: 9}); k != (Key{1, 1}) || mask != 2 {
			t.Fatalf("%v is dirty, %#x", k, mask)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		for n := range uint64(8) {
			access(p, Key{0, n})
		}
		out := make([]Extent, 4)
		for run := p.TakeDirty(Key{}, Key{LU: 9}, out, nil); run.Outcome == Granted; run = p.TakeDirty(Key{}, Key{LU: 9}, out, nil) {
			p.EndFlush(out[:run.Extents], true)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
