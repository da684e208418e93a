package cache

import "testing"

// BenchmarkFussy is what FussyCache's decisions cost beside those of LRU: an
// access to a resident block, and one to an absent block of which the metadata
// cache knows or does not know.
func BenchmarkFussy(b *testing.B) {
	fussy := func(b *testing.B) *Fussy {
		f, err := NewFussy(FussyParams{FreqThreshold: maxFreq - 1, AccessThreshold: benchSlots, Metadata: benchSlots, HRCount: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		name   string
		decide func(f *Fussy, k Key)
		blocks int
	}{
		{"hit", func(f *Fussy, k Key) { f.Hit(k) }, benchSlots},
		{"miss, known", func(f *Fussy, k Key) { f.Miss(k) }, benchSlots / 2},
		{"miss, unknown", func(f *Fussy, k Key) { f.Miss(k) }, 8 * benchSlots},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, walk, out := fussy(b), keys(c.blocks, 5), make([]Key, 64)
			for _, n := range walk[:min(c.blocks, benchSlots)] {
				c.decide(f, Key{0, n})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.decide(f, Key{0, walk[i%len(walk)]})
				for f.Due() {
					f.Tick(out)
				}
			}
		})
	}
}
