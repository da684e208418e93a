package target_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// TestWaitingWriteAsksForNothing: the data of a write is asked for when its turn
// has come, not while it waits in the gate.
func TestWaitingWriteAsksForNothing(t *testing.T) {
	const n = 1 << 20
	r := crawlingRig(t)
	c := r.login(initiator.Options{})
	r.queue(c, 2)
	data := pattern(n, 3)
	task := start(t, c, initiator.Command{CDB: cdbWrite16(64, n/512), Out: data, HoldData: true})
	eventually.Holds(t, "the write waits", func() bool { return r.waiting() >= 2 })
	for range 3 { // whatever was sent before the answer is seen
		if err := c.Ping([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // a while in which it might be asked for
	}
	if len(task.R2Ts) != 0 {
		t.Fatalf("%d R2Ts for a write that waits", len(task.R2Ts))
	}
	r.lift()
	asked := 0
	for !task.Done {
		for ; len(task.R2Ts) > 0; asked++ {
			if err := c.SendData(task); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
	}
	if asked == 0 {
		t.Error("the write ended without an R2T")
	}
	res, err := c.Command(cdbRead16(64, n/512), 0, nil, n)
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Error("not what was written")
	}
}

// fill starts reads until the window is closed.
func fill(t *testing.T, c *initiator.Conn) (tasks []*initiator.Task) {
	for c.WindowOpen() {
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbRead16(uint64(8*len(tasks)), 8), InLen: 4096}))
	}
	return tasks
}

// TestInitiatorIsHeldBack: who sends more than its limit lets pass keeps the
// commands on its own side once it has used up what it was granted, and may use
// the whole window again afterwards. What it has used on a device that it sees no more
// does not count.
func TestInitiatorIsHeldBack(t *testing.T) {
	const depth, most = 128, 32 // commands that may wait
	r := gatedRig(t, everyone(500))
	c := r.login(initiator.Options{})
	other := r.unit("on another device", nil)
	r.grant(target.LUNMapping{LU: r.lu}, target.LUNMapping{LUN: 3, LU: other})
	r.grant(target.LUNMapping{LU: r.lu})
	r.remove(other)
	for testUnitReady(t, c, 0) != [2]byte{} { // that LUNs have changed
		continue
	}
	tasks := fill(t, c)
	if len(tasks) < depth-8 { // some of a new session's window is under way
		t.Fatalf("the window takes %d commands, expected about %d", len(tasks), depth)
	}
	for len(tasks) > most { // the first window drains
		res, err := c.Wait(tasks[0])
		mustGood(t, res, err)
		tasks = tasks[1:]
	}
	for range 100 {
		tasks = append(tasks, fill(t, c)...)
		if n := len(tasks); n > most+16 {
			t.Fatalf("%d commands outstanding, expected that no more than %d wait", n, most)
		}
		res, err := c.Wait(tasks[0])
		mustGood(t, res, err)
		tasks = tasks[1:]
	}
	r.lift()
	for _, task := range tasks {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	if err := c.Ping(nil); err != nil {
		t.Fatal(err)
	}
	if n := c.MaxCmdSN - c.CmdSN + 1; n != depth {
		t.Errorf("window of %d commands afterwards, expected %d", n, depth)
	}
	if _, err := c.Start(initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}); errors.Is(err, initiator.ErrWindowClosed) {
		t.Error(err)
	}
}
