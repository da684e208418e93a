package tier

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// A write that needs its marks in the journal of a segment allocates no more than
// one in private memory: nothing.
func TestNoAllocationsWithJournal(t *testing.T) {
	s := newSite(t)
	s.options.Checksum = true
	p := s.start()
	v, err := p.wrapStore(newRAM(t), config("a", Back))
	o := p.use(v, err)
	o.Write(t, 0, backstoretest.Pattern(page, 1))
	op := backstore.Op{Kind: backstore.Write, Data: backstoretest.Buffer(page)}
	backstoretest.On(p.loop, func() {
		for way, do := range map[string]func(*backstore.Op) bool{"TryNow": o.Lane.TryNow, "Submit": o.Lane.Submit} {
			got := testing.AllocsPerRun(30, func() {
				op.Off += page
				if !t.Failed() && !do(&op) || op.Err != nil {
					t.Errorf("write at %d by %s: not done at once, error %v", op.Off, way, op.Err)
				}
			})
			if got != 0 {
				t.Errorf("a write by %s: %v allocations", way, got)
			}
		}
	})
	if n := p.cache.Stats().DirtyBytes; n != 63*page {
		t.Errorf("%d bytes are dirty, expected those of 63 writes", n)
	}
	p.end()
}
