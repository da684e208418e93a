package target_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/target"
)

// rules makes a policy.
func rules(t *testing.T, list ...scheduler.Rule) *scheduler.Policy {
	t.Helper()
	p, err := scheduler.NewPolicy(list, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everyone may do n commands per second.
func everyone(n int64) scheduler.Rule {
	return scheduler.Rule{Name: "everyone", Initiators: []string{"*"}, Limit: scheduler.Rate{IOPS: n}}
}

// crawl lets one command through at once and the next one after more than a minute.
func crawl(t *testing.T) *scheduler.Policy {
	t.Helper()
	p, err := scheduler.NewPolicy([]scheduler.Rule{everyone(1)}, nil, scheduler.Cost{Unit: 32})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func crawlingRig(t *testing.T) *rig {
	return newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: crawl(t)}}})
}

func gatedRig(t *testing.T, list ...scheduler.Rule) *rig {
	return newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: rules(t, list...)}}})
}

// waiting is how many commands wait in the gates.
func (r *rig) waiting() (n int) {
	for _, f := range r.server.QoS("").Flows {
		n += f.Waiting
	}
	return n
}

// lift takes all rules away.
func (r *rig) lift() { r.server.SetQoS(&scheduler.Policy{}) }

// queue starts reads of 4 KiB and returns those whose turn does not come.
func (r *rig) queue(c *initiator.Conn, n int) (tasks []*initiator.Task) {
	r.t.Helper()
	for i := range n {
		task, err := c.Start(initiator.Command{CDB: cdbRead16(uint64(8*i), 8), InLen: 4096})
		if err != nil {
			r.t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	what := fmt.Sprintf("commands that wait, expected %d", n-1)
	eventually.Passes(r.t, what, r.waiting, func(found int) bool { return found >= n-1 })
	return tasks
}

// TestLimitHolds: over any time, no more commands pass than the limit and the
// burst allow, and all come to their turn.
func TestLimitHolds(t *testing.T) {
	const rate, depth, total = 2000, 16, 400
	r := gatedRig(t, everyone(rate))
	c := r.login(initiator.Options{})
	began := time.Now()
	var tasks []*initiator.Task
	for i := range total {
		if i >= depth {
			res, err := c.Wait(tasks[i-depth])
			mustGood(t, res, err)
		}
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbRead16(uint64(8*i), 8), InLen: 4096}))
	}
	for _, task := range tasks[total-depth:] {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	allowed := rate*time.Since(began).Seconds() + rate/100 + 1
	if total > allowed {
		t.Errorf("%d commands in %v, expected at most %.0f", total, time.Since(began), allowed)
	}
}

// TestExemptCommandsPass: who waits for tokens can still ask.
func TestExemptCommandsPass(t *testing.T) {
	r := crawlingRig(t)
	c := r.login(initiator.Options{})
	tasks := r.queue(c, 4)
	for _, cdb := range [][]byte{{0, 0, 0, 0, 0, 0}, {0x12, 0, 0, 0, 36, 0}} {
		res, err := c.Command(cdb, 0, nil, 36)
		mustGood(t, res, err)
	}
	if err := c.Ping([]byte("still there")); err != nil {
		t.Error(err)
	}
	r.lift()
	for _, task := range tasks {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
}

// TestDataOfWaitingWrites: what came with a write that waits is written when its
// turn comes, whether all of it came unasked or not.
func TestDataOfWaitingWrites(t *testing.T) {
	for _, n := range []int{512, 4096, 20 << 10, 64 << 10, 300 << 10} {
		r := crawlingRig(t)
		c := r.login(initiator.Options{})
		r.queue(c, 2)
		data := pattern(n, byte(n>>9))
		task := start(t, c, initiator.Command{CDB: cdbWrite16(64, uint32(n/512)), Out: data})
		eventually.Holds(t, "the write waits", func() bool { return r.waiting() >= 2 })
		r.lift()
		res, err := c.Wait(task)
		mustGood(t, res, err)
		res, err = c.Command(cdbRead16(64, uint32(n/512)), 0, nil, n)
		mustGood(t, res, err)
		if !bytes.Equal(res.In, data) {
			t.Errorf("%d bytes: not what was written", n)
		}
	}
}

// TestAbortOfWaitingCommands: task management ends commands in the gate at once.
func TestAbortOfWaitingCommands(t *testing.T) {
	for _, function := range []byte{initiator.AbortTask, initiator.AbortTaskSet, initiator.LogicalUnitReset} {
		r := crawlingRig(t)
		c := r.login(initiator.Options{})
		tasks := r.queue(c, 5)
		code, err := c.TaskManagement(initiator.TaskRequest{Function: function, Referenced: tasks[4]})
		if err != nil || code != 0 {
			t.Fatalf("function %d: response %d, %v", function, code, err)
		}
		left := 0
		if function == initiator.AbortTask {
			left = 3
		}
		if n := r.waiting(); n > left {
			t.Errorf("function %d: %d commands wait, expected at most %d", function, n, left)
		}
	}
}

// TestSessionEndsWhileCommandsWait: nothing of it is left.
func TestSessionEndsWhileCommandsWait(t *testing.T) {
	r := crawlingRig(t)
	c := r.login(initiator.Options{})
	r.queue(c, 6)
	c.Close()
	eventually.Holds(t, "the session has ended", func() bool {
		h := r.server.Holding()
		return h.Sessions == 0 && h.Buffers == 0 && len(r.server.QoS("").Flows) == 0
	})
}

// TestRulesAreTold: who was held back can learn by what.
func TestRulesAreTold(t *testing.T) {
	r := gatedRig(t, everyone(50))
	c := r.login(initiator.Options{})
	var tasks []*initiator.Task
	for i := range 8 { // at once, so that some have to wait
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbRead16(uint64(8*i), 8), InLen: 4096}))
	}
	for _, task := range tasks {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	r.counted()
	status := r.server.QoS(initiator.DefaultInitiator)
	if len(status.Flows) != 1 {
		t.Fatalf("%d flows, expected 1", len(status.Flows))
	}
	f := status.Flows[0]
	if f.Counters.Served != 8 || f.Counters.Bytes != 8*4096 || len(f.Effects) != 1 || f.Effects[0].Rule != "everyone" || f.Effects[0].HeldIOPS == 0 {
		t.Errorf("counters %+v, effects %+v: expected 8 commands of 4 KiB, held back by rule everyone", f.Counters, f.Effects)
	}
}
