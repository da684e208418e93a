package scheduler

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

// TestBatch: global tokens are fetched in batches that fit the device.
func TestBatch(t *testing.T) {
	for capacity, want := range map[int64]int64{0: 1, 500: 1, 15_700: 15, 1_570_000: 1000} {
		if got := batchOf(capacity); got != want {
			t.Errorf("capacity %d: found %d, expected %d", capacity, got, want)
		}
	}
}

// TestCapacityHasAFloor: whatever is used, the capacity falls only while
// commands wait for the device, and then neither below the reservations nor
// below half of the profile.
func TestCapacityHasAFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewEstimator(EstimatorConfig{Profile: rapid.SampledFrom([]int64{0, 1000}).Draw(t, "profile"), Slack: 0.002})
		low := 0
		for range rapid.IntRange(1, 40).Draw(t, "periods") {
			e.Reserve(rapid.Int64Range(0, 1500).Draw(t, "reserved"))
			before, floor := e.Capacity(), e.Floor()
			used, backlogged := rapid.Int64Range(0, 3000).Draw(t, "used"), rapid.Bool().Draw(t, "backlogged")
			after := e.Observe(used, backlogged)
			if low++; !backlogged || used >= floor {
				low = 0
			}
			if relearnt := e.cfg.Profile == 0 && low > 0 && low%5 == 0; after < before && (!backlogged || after < floor && !relearnt) {
				t.Fatalf("%d used, backlogged %v: found the capacity fall from %d to %d, its floor is %d", used, backlogged, before, after, floor)
			}
			if profile := e.cfg.Profile; profile == 0 && after < used && used >= floor && used > before {
				t.Fatalf("%d used: found a capacity of %d", used, after)
			}
		}
	})
}

// hits is one millisecond in which n commands come and go without the device.
func (a *alone) hits(n int, q *Queue) {
	for range n {
		task := &Task{Cost: 1, Bytes: 4096}
		if !a.gate.Admit(q, task, a.now) {
			a.t.Fatal("expected the command to pass")
		}
		task.Hit = true
		a.gate.Done(task, a.now)
	}
}

// TestHitsSayNothingOfTheCapacity: neither that the device is faster nor that it
// is slower, and they use no reservation of it up.
func TestHitsSayNothingOfTheCapacity(t *testing.T) {
	for _, c := range []struct{ profile, omega int64 }{{10_000, 10_000}, {0, 3000}} {
		a := newAlone(t, GateConfig{}, Rule{Initiators: []string{"iqn.db"}, Reservation: Rate{IOPS: 2000}})
		a.coord = NewCoordinator(CoordinatorConfig{Threads: 1, Monitor: MonitorConfig{Estimator: EstimatorConfig{Profile: c.profile, Slack: 0.002}}})
		db, other := a.open("iqn.db", 0), a.open("iqn.other", 0)
		exchange(a.coord, a.now, a.gate)
		for range 3500 {
			a.hits(40, db)
			a.step(3, 4, other)
		}
		if got := a.coord.Monitor(a.disk).Capacity(); got < c.omega || got > c.omega*105/100 {
			t.Errorf("profile %d: found a capacity of %d, expected about %d", c.profile, got, c.omega)
		}
		if left := db.Engine().Residual(); left < 900 {
			t.Errorf("profile %d: found %d reservation tokens in mid-period, expected about 1000", c.profile, left)
		}
		if n := db.Counters(); n.Served != 3500*40 || n.Hits != n.Served {
			t.Errorf("profile %d: found %d served and %d hits", c.profile, n.Served, n.Hits)
		}
	}
}

// TestIdleDeviceKeepsItsCapacity: nothing is learnt from nothing.
func TestIdleDeviceKeepsItsCapacity(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 4}, Rule{Initiators: []string{"iqn.db"}, Reservation: Rate{IOPS: 2000}})
	q := a.open("iqn.db", 0)
	for range 2500 {
		a.step(1, 1, q)
	}
	if got := a.coord.Monitor(a.disk).Capacity(); got != 10_000 {
		t.Errorf("found a capacity of %d, expected 10000", got)
	}
}

// TestVisitorsUseTheCapacity: initiators that come after a period's start and go
// before its end get no more of the hard pool than there is, and what they had
// counts for the capacity.
func TestVisitorsUseTheCapacity(t *testing.T) {
	a := newAlone(t, GateConfig{Mode: HardPool, Batch: 10}, Rule{Initiators: []string{"iqn.nobody"}})
	exchange(a.coord, a.now, a.gate)
	served := 0
	var report GateReport
	for a.now < 990*ms {
		q := a.open("iqn.visitor", 0)
		for range 7 {
			served += len(a.serve(100, 20, q))
			if a.now/ms%5 == 0 {
				a.gate.Report(&report, a.now)
				a.coord.Collect(&report)
				a.coord.Check(a.now)
			}
		}
		for _, task := range a.device {
			a.gate.Done(task, a.now)
			served++
		}
		a.device = nil
		for q.Pending() > 0 {
			a.gate.Cancel(q.tasks.head, a.now)
		}
		a.gate.Close(q, a.now)
	}
	if served < 9000 || served > 10_000+500 {
		t.Errorf("found %d commands served of a capacity of 10000", served)
	}
}
