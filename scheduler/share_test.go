package scheduler

import (
	"fmt"
	"testing"

	"lunar/internal/arith"
	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// limited are four threads with four entities, of which the i-th is on the first
// i threads, always waits, and is held to its limit. Counts are by thread.
type limited struct {
	limit, capacity int64 // tokens/s; of each thread
	grants          [4]GateGrant
	served          [4]map[string]int64
	busy            [4]bool
	disk            *Device
}

func newLimited(limit, capacity int64) *limited {
	l := &limited{limit: limit, capacity: capacity, disk: &Device{Name: "disk"}}
	for j := range l.grants {
		l.served[j] = map[string]int64{}
		for i := j; i < 4; i++ {
			l.grants[j].Shares = append(l.grants[j].Shares, EntityShare{Entity: fmt.Sprint(i), Share: whole / int64(i+1)})
		}
	}
	return l
}

// serve is an interval of a thread: who shares it gets in proportion to what its
// limit allows there. It returns what was served of the capacity.
func (l *limited) serve(j int) (served int64) {
	allowed := int64(0)
	for _, e := range l.grants[j].Shares {
		allowed += arith.MulDiv(l.limit, e.Share, whole) / 5
	}
	l.busy[j] = allowed >= l.capacity/5
	for _, e := range l.grants[j].Shares {
		n := arith.MulDiv(arith.MulDiv(l.limit, e.Share, whole)/5, min(allowed, l.capacity/5), allowed)
		l.served[j][e.Entity] += n
		served += n
	}
	return served
}

func (l *limited) report(j int) *GateReport {
	r := ServerReport{Device: l.disk, Backlogged: l.busy[j]}
	for i := j; i < 4; i++ {
		served := l.served[j][fmt.Sprint(i)]
		r.Entities = append(r.Entities, EntityReport{Entity: fmt.Sprint(i), Number: int64(i + 1), Level: InitiatorLevel, Root: true,
			Limit: l.limit, Offered: served + 16, Served: served, Queued: 16, Backlogged: true})
	}
	return &GateReport{Thread: j, Servers: []ServerReport{r}}
}

// TestLimitsAreDividedByPShift: of initiators that wait on all their threads,
// each gets its limit where others need theirs least, so that the threads are
// used together. Nobody gets more than its limit, and no thread none of it.
func TestLimitsAreDividedByPShift(t *testing.T) {
	l := newLimited(2400, 2000)
	c := NewCoordinator(CoordinatorConfig{Threads: 4, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 4 * l.capacity}}})
	used := int64(0)
	for interval := range int64(15) {
		used = 0
		for j := range l.grants {
			used += l.serve(j)
			c.Collect(l.report(j))
		}
		c.Redistribute(interval*200e6, l.grants[:])
		l.checkShares(t)
	}
	if all := 4 * l.capacity / 5; used < all*97/100 {
		t.Errorf("limits let the threads serve %d per interval, expected at least 97 %% of %d; shares %+v", used, all, l.grants)
	}
}

// TestLimitsDoNotLowerTheCapacity: what limits leave unused is not taken for a
// device that has become slower.
func TestLimitsDoNotLowerTheCapacity(t *testing.T) {
	l := newLimited(1200, 2000) // 4800 of 8000 in all
	c := NewCoordinator(CoordinatorConfig{Threads: 4, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 4 * l.capacity}}})
	for interval := range int64(30) {
		for j := range l.grants {
			l.serve(j)
			r := l.report(j)
			r.Servers[0].Backlogged = true // for a moment
			c.Collect(r)
			r.Servers[0].Backlogged = l.busy[j]
			c.Collect(r)
		}
		c.Redistribute(interval*200e6, l.grants[:])
	}
	if omega := c.Monitor(l.disk).Capacity(); omega < 4*l.capacity {
		t.Errorf("capacity %d, expected at least %d as configured", omega, 4*l.capacity)
	}
}

func (l *limited) checkShares(t *testing.T) {
	shares := map[string]int64{}
	for j := range l.grants {
		for _, e := range l.grants[j].Shares {
			if e.Share == 0 {
				t.Errorf("thread %d has nothing of the limit of %s", j, e.Entity)
			}
			shares[e.Entity] += e.Share
		}
	}
	for e, share := range shares {
		if share > whole || share < whole-8 {
			t.Errorf("entity %s has %d millionths of its limit, expected all", e, share)
		}
	}
}

func TestCeiling(t *testing.T) {
	c := Cost{Unit: 8192}
	for _, test := range []struct {
		limit Rate
		want  int64
	}{
		{Rate{}, pshift.Unlimited}, {Rate{IOPS: 7}, 7}, {Rate{Bytes: 81920}, 10}, {Rate{IOPS: 7, Bytes: 81920}, 7}, {Rate{IOPS: 70, Bytes: 81920}, 10}, {Rate{Bytes: 1}, 1},
	} {
		if got := c.ceiling(test.limit); got != test.want {
			t.Errorf("%+v: found %d tokens/s, expected %d", test.limit, got, test.want)
		}
	}
}

// TestThrottledIsWhatLimitsLeaveUnused: a device that has room counts as held back
// while all that waits is held by limits, and neither while it is full nor while
// nothing waits.
func TestThrottledIsWhatLimitsLeaveUnused(t *testing.T) {
	a := newAlone(t, GateConfig{Window: 4}, Rule{Initiators: []string{"iqn.slow"}, Limit: Rate{IOPS: 1000}})
	held := func() int64 {
		var r GateReport
		a.gate.Report(&r, a.now)
		return r.Servers[0].Throttled
	}
	slow, fast := a.open("iqn.slow", 0), a.open("iqn.fast", 0)
	run := func(depth int, queues ...*Queue) int64 {
		held()
		for range 100 {
			a.serve(2, depth, queues...)
		}
		return held()
	}
	run(8, slow) // its burst
	if ns := run(8, slow); ns < 80*ms || ns > 100*ms {
		t.Errorf("a limit of half the device: held back for %d ms of 100, expected nearly all", ns/ms)
	}
	if ns := run(8, slow, fast); ns > 5*ms {
		t.Errorf("with another that always waits: held back for %d ms of 100, expected none", ns/ms)
	}
	for a.gate.Waiting() > 0 || a.gate.InFlight() > 0 {
		a.serve(2, 0, slow, fast)
	}
	if ns := run(0); ns > 0 {
		t.Errorf("without commands: held back for %d ns of 100 ms, expected none", ns)
	}
}
