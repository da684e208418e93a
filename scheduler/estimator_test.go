package scheduler

import (
	"testing"

	"lunar/scheduler/haechi"
)

// TestBatch: global tokens are fetched in batches that fit the device.
func TestBatch(t *testing.T) {
	for capacity, want := range map[int64]int64{0: 1, 500: 1, 15_700: 15, 1_570_000: 1000} {
		if got := batchOf(capacity); got != want {
			t.Errorf("capacity %d: found %d, expected %d", capacity, got, want)
		}
	}
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
		a.coord = NewCoordinator(CoordinatorConfig{Threads: 1, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: c.profile, Slack: 0.002}}})
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
