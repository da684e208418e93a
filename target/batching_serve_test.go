package target_test

import (
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/scheduler/batch"
	"lunar/target"
)

// TestLoneRequestIsNotDelayed: whoever has one command at a time never waits for
// others, whatever the level, and no other thread has a part in what a fast store
// serves.
func TestLoneRequestIsNotDelayed(t *testing.T) {
	for name, c := range map[string]batch.Config{
		"off":      {},
		"static":   {Mode: batch.Static, Level: 64, Delay: int64(10 * time.Millisecond)},
		"adaptive": {Mode: batch.Adaptive, Delay: int64(10 * time.Millisecond)},
	} {
		r := newRig(t, rigOptions{config: target.Config{Batching: &c}})
		conn := r.login(initiator.Options{})
		before := sumThreads(r.server)
		const reads = 300
		for range reads {
			res, err := conn.Command(cdbRead16(0, 8), 0, nil, 4096)
			mustGood(t, res, err)
		}
		after := sumThreads(r.server)
		if after.Rests != 0 {
			t.Errorf("%s: %d rests while one command came at a time", name, after.Rests)
		}
		if n := after.Handovers - before.Handovers; n > reads/10 {
			t.Errorf("%s: %d hand-overs in %d reads", name, n, reads)
		}
		if after.BatchedRequests-before.BatchedRequests != reads || after.Batches-before.Batches != reads {
			t.Errorf("%s: %d requests in %d batches, expected %d in as many", name,
				after.BatchedRequests-before.BatchedRequests, after.Batches-before.Batches, reads)
		}
		if want := map[string]int{"off": 1, "static": 64, "adaptive": 8}[name]; after.BatchLevel != want {
			t.Errorf("%s: level %d, expected %d", name, after.BatchLevel, want)
		}
	}
}

// sumThreads adds up what event threads did, when they have counted it; the level is that of one that had work.
func sumThreads(s *target.Server) (sum target.ThreadStats) {
	s.Holding() // a pass is counted after its responses have left
	for _, th := range s.Threads() {
		sum.Rests += th.Rests
		sum.Handovers += th.Handovers
		sum.Batches += th.Batches
		sum.BatchedRequests += th.BatchedRequests
		sum.BatchLevel = max(sum.BatchLevel, th.BatchLevel)
	}
	return sum
}

// TestUrgentIsNotDelayed: a thread that gathers commands of busy initiators does so
// no longer while it serves one whose commands go before all others.
func TestUrgentIsNotDelayed(t *testing.T) {
	gathering := &batch.Config{Mode: batch.Static, Level: 64, Delay: int64(time.Millisecond)}
	r := newRig(t, rigOptions{config: target.Config{Batching: gathering, Threads: 1}})
	busy := r.login(initiator.Options{})
	tasks := fill(t, busy)
	turn := func() {
		res, err := busy.Wait(tasks[0])
		mustGood(t, res, err)
		tasks = append(tasks[1:], start(t, busy, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}))
	}
	rested := func() uint64 { return sumThreads(r.server).Rests }
	eventually.Holds(t, "the thread rests", func() bool { turn(); return rested() > 0 })

	r.server.SetQoS(rules(t, scheduler.Rule{Name: "now", Initiators: []string{"iqn.2026-01.lunar:urgent"}, Class: scheduler.Urgent}))
	from := rested()
	turn()
	eventually.Holds(t, "the thread rests under a rule for somebody else", func() bool { turn(); return rested() > from })

	urgent := r.login(initiator.Options{Initiator: "iqn.2026-01.lunar:urgent"})
	from = rested()
	for range 2000 {
		turn()
	}
	if n := rested() - from; n > 0 {
		t.Errorf("%d rests while the thread serves somebody urgent, expected none", n)
	}
	urgent.Close()
	eventually.Holds(t, "the thread rests again", func() bool { turn(); return rested() > from })
}
