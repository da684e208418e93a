package qtcp

import "testing"

// TestShortest: a shorter time counts at once, a longer one when the shorter is old.
func TestShortest(t *testing.T) {
	var s Shortest
	const minute = remembered + 1
	for i, step := range []struct{ time, now, want int64 }{
		{5, minute, 5}, {0, minute + 1, 0}, {7, minute + 2, 0}, {7, 2*minute + 1, 0}, {8, 2*minute + 2, 0}, {8, 3*minute + 2, 7}, {9, 4*minute + 3, 8},
	} {
		if got := s.Take(step.time, step.now); got != step.want {
			t.Errorf("step %d: the shortest is %d, expected %d", i, got, step.want)
		}
	}
}
