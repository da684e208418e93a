package images

import (
	"testing"
	"time"
)

// TestPace: pieces grow while they are quick, shrink where they are slow, and keep within
// bounds.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		piece int64
		took  time.Duration
		want  int64
	}{
		{100, time.Millisecond, 400},
		{900, time.Millisecond, 1000},
		{100, 50 * time.Millisecond, 100},
		{100, time.Second, 25},
		{12, time.Second, 10},
	} {
		p := pace{piece: test.piece, least: 10, most: 1000, quick: 10 * time.Millisecond, slow: 100 * time.Millisecond}
		if p.next(test.took); p.piece != test.want {
			t.Errorf("after %d bytes in %v: found %d, expected %d", test.piece, test.took, p.piece, test.want)
		}
	}
}
