package tcp

import "testing"

// TestPace: what leaves at once is as much as the time of a pass is long enough for,
// between two bounds, and an interrupted send does not count for long.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		bytes int
		ns    int64
		part  int
	}{
		{256 << 10, 15_000, passSent},
		{256 << 10, 50_000, 1 << 20},
		{256 << 10, 400_000, 128 << 10},
		{64 << 10, 20_000_000, leastPart},
	} {
		var p pace
		if p.part() != passSent {
			t.Fatalf("%d bytes at first, expected %d", p.part(), passSent)
		}
		for range 100 {
			p.took(c.bytes, c.ns)
		}
		if got := p.part(); got < c.part*9/10 || got > c.part*11/10 {
			t.Errorf("%d bytes in %d ns: %d at once, expected about %d", c.bytes, c.ns, got, c.part)
		}
	}
	var p pace
	p.took(256<<10, 50_000)
	p.took(256<<10, 17_000_000)
	for range 64 {
		p.took(256<<10, 50_000)
	}
	if p.part() < 768<<10 {
		t.Errorf("%d bytes some time after an interruption", p.part())
	}
}
