package pshift

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestMeter: each part is done once, and what is saved is the time of all but the
// longest.
func TestMeter(t *testing.T) {
	runtime.LockOSThread() // whose time it is
	defer runtime.UnlockOSThread()
	var m meter
	var done []int
	spin := func(d time.Duration) {
		for start := threadTime(); threadTime()-start < d; {
		}
	}
	m.run(3, func(part int) {
		done = append(done, part)
		spin(time.Duration(1+part) * time.Millisecond)
	})
	if !slices.Equal(done, []int{0, 1, 2}) || m.handed != 1 {
		t.Errorf("found parts %v and %d hand-overs, expected 0, 1, 2 and one", done, m.handed)
	}
	if m.saved < 3*time.Millisecond {
		t.Errorf("found %v saved, expected at least that of the shorter parts", m.saved)
	}
}
