package haechi

import (
	"testing"

	"pgregory.net/rapid"
)

// TestQuietStart: what an initiator did that had only begun is not the capacity
// for long, and what depends on the profile follows it.
func TestQuietStart(t *testing.T) {
	for _, c := range []struct {
		name         string
		config       EstimatorConfig
		floor, omega int64 // after 10,000 were used in two periods
	}{
		{"learnt", EstimatorConfig{Slack: 0.002}, 5000, 10_100},
		{"learnt, floor and step given", EstimatorConfig{Floor: 20, Step: 7}, 20, 10_007},
		{"with a profile", EstimatorConfig{Profile: 100, Slack: 0.002}, 50, 102},
	} {
		e := NewEstimator(c.config)
		for _, used := range []int64{5, 10_000, 10_000} {
			e.Observe(used, false)
		}
		if e.Capacity() != c.omega || e.Floor() != c.floor {
			t.Errorf("%s: found capacity %d and floor %d, expected %d and %d", c.name, e.Capacity(), e.Floor(), c.omega, c.floor)
		}
	}
}

// TestRecovery: a device that became slow and is fast again is followed at once,
// and the slow periods do not count once more.
func TestRecovery(t *testing.T) {
	e := NewEstimator(EstimatorConfig{Slack: 0.002})
	for i, c := range []struct{ used, omega int64 }{{10_000, 10_000}, {6000, 6000}, {5500, 5750}, {9000, 9000}, {8000, 8000}, {7000, 7500}} {
		if got := e.Observe(c.used, true); got != c.omega {
			t.Errorf("period %d, %d used: found %d, expected %d", i+1, c.used, got, c.omega)
		}
	}
}

// TestShortBurst: what a device did for a moment is not its capacity for ever,
// and one slow moment does not make it forget what it does.
func TestShortBurst(t *testing.T) {
	e := NewEstimator(EstimatorConfig{Slack: 0.002})
	e.Observe(50_000, true)
	for i, c := range []struct {
		used       int64
		backlogged bool
		omega      int64
	}{{9000, true, 50_000}, {11_000, true, 50_000}, {10_000, true, 50_000}, {10_000, true, 50_000}, {100, false, 50_000},
		{9000, true, 50_000}, {11_000, true, 50_000}, {10_000, true, 50_000}, {10_000, true, 50_000}, {10_000, true, 10_000}, {9000, true, 9000}} {
		if got := e.Observe(c.used, c.backlogged); got != c.omega {
			t.Errorf("period %d, %d used: found %d, expected %d", i+1, c.used, got, c.omega)
		}
	}
}

// TestCapacityHasAFloor: whatever is used, the capacity falls only while
// commands wait for the device, and then neither below the reservations nor
// below half of the profile, but where a window of low periods makes a profile
// be learnt anew.
func TestCapacityHasAFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewEstimator(EstimatorConfig{Profile: rapid.SampledFrom([]int64{0, 1000}).Draw(t, "profile"), Slack: 0.002})
		low := 0
		for range rapid.IntRange(1, 40).Draw(t, "periods") {
			e.Reserve(rapid.Int64Range(0, 1500).Draw(t, "reserved"))
			before, floor, whole := e.Capacity(), e.Floor(), len(e.doubts) == e.cfg.Window-1
			used, backlogged := rapid.Int64Range(0, 3000).Draw(t, "used"), rapid.Bool().Draw(t, "backlogged")
			after := e.Observe(used, backlogged)
			if low++; !backlogged || used >= floor {
				low = 0
			}
			if relearnt := e.cfg.Profile == 0 && whole && low >= e.cfg.Window; after < before && (!backlogged || after < floor && !relearnt) {
				t.Fatalf("%d used, backlogged %v: found the capacity fall from %d to %d, its floor is %d", used, backlogged, before, after, floor)
			}
			if profile := e.cfg.Profile; profile == 0 && after < used && used >= floor && used > before {
				t.Fatalf("%d used: found a capacity of %d", used, after)
			}
		}
	})
}
