package target_test

import (
	"bytes"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/target"
)

// governedPolicy puts everybody into the class low of a network that tgtd governs.
func governedPolicy(t *testing.T) *scheduler.Policy {
	t.Helper()
	all := scheduler.Rule{Name: "all", Initiators: []string{"*"}, Class: scheduler.Low}
	return rules(t, all).WithNetwork(scheduler.Network{Governor: scheduler.ServerGovernor, Delay: scheduler.DefaultDelay})
}

// paced is an initiator whose writes are asked for within a window.
type paced struct {
	*rig
	*initiator.Conn
	tasks  []*initiator.Task
	widest int64 // window so far
}

func (p *paced) window() int64 {
	p.t.Helper()
	all := p.server.QoS("").Classes
	if len(all) != 1 || all[0].Pacing.Window <= 0 {
		p.t.Fatalf("found %+v, expected one connection whose writes are paced", all)
	}
	p.widest = max(p.widest, all[0].Pacing.Window)
	return p.widest
}

// asked is how many bytes were asked for and not sent, which must fit in the window.
func (p *paced) asked() (n int64) {
	p.t.Helper()
	for _, task := range p.tasks {
		for _, r2t := range task.R2Ts {
			n += int64(r2t.U32(initiator.AtLength))
		}
	}
	if most := p.window(); n > most {
		p.t.Errorf("%d bytes are asked for, the window has %d", n, most)
	}
	return n
}

// writes starts writes of a MiB each, whose data are held back.
func (p *paced) writes(t *testing.T, n int) {
	t.Helper()
	p.tasks = nil
	for i := range n {
		p.tasks = append(p.tasks, start(t, p.Conn, initiator.Command{CDB: cdbWrite16(uint64(i)*2048, 2048), Out: pattern(1<<20, byte(i)), HoldData: true}))
	}
	for p.asked() == 0 {
		p.step(t)
	}
	if err := p.Ping(nil); err != nil { // all commands are there, and all R2Ts that came of them
		t.Fatal(err)
	}
	p.asked()
}

func (p *paced) step(t *testing.T) {
	t.Helper()
	if _, err := p.Step(0); err != nil {
		t.Fatal(err)
	}
}

// finish sends what is asked for until all writes have ended.
func (p *paced) finish(t *testing.T) {
	t.Helper()
	for {
		p.asked()
		open, sent := false, false
		for _, task := range p.tasks {
			open = open || !task.Done
			for len(task.R2Ts) > 0 {
				if err := p.SendData(task); err != nil {
					t.Fatal(err)
				}
				sent = true
			}
		}
		if !open {
			break
		}
		if !sent {
			p.step(t)
		}
	}
	for _, task := range p.tasks {
		res, err := p.Wait(task)
		mustGood(t, res, err)
	}
}

// TestPacedWrites: an initiator that writes more than the window is asked for no more than
// that at a time, also when it keeps its data back; its data are right. A write that is aborted
// makes room for others, and one that waits leaves nothing behind.
func TestPacedWrites(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: governedPolicy(t)}}})
	p := &paced{rig: r, Conn: r.login(initiator.Options{Keys: solicitedOnly})}
	p.writes(t, 6)
	abort := func(i int) {
		t.Helper()
		task := p.tasks[i]
		if code, err := p.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: task}); err != nil || code != 0 {
			t.Fatalf("abort: response %d, %v", code, err)
		}
		p.Forget(task)
		p.tasks = append(p.tasks[:i:i], p.tasks[i+1:]...)
	}
	abort(5) // which waits
	abort(0) // which has all of the window
	for p.asked() == 0 {
		p.step(t)
	}
	p.finish(t)
	for i := 1; i < 5; i++ {
		if got := mustDo(t, p.Conn, initiator.Command{CDB: cdbRead16(uint64(i)*2048, 2048), InLen: 1 << 20}).In; !bytes.Equal(got, pattern(1<<20, byte(i))) {
			t.Errorf("write %d: read back other data", i)
		}
	}
	p.writes(t, 4)
	if code, err := p.Logout(0); err != nil || code != 0 {
		t.Fatalf("logout: response %d, %v", code, err)
	}
	eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
}

// TestPacingEndsWithItsPolicy: writes that wait for the window go on when nothing governs them
// any more, and when it does again.
func TestPacingEndsWithItsPolicy(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: governedPolicy(t)}}})
	p := &paced{rig: r, Conn: r.login(initiator.Options{Keys: solicitedOnly})}
	p.writes(t, 4)
	r.lift()
	for _, task := range p.tasks {
		for len(task.R2Ts) == 0 {
			p.step(t)
		}
	}
	r.server.SetQoS(governedPolicy(t))
	p.widest = 8 << 20 // what was asked for meanwhile
	p.finish(t)
}

// TestPacedWritesAreReassigned: a write that waits for the window of a connection that is lost
// goes on with that of the connection that it is reassigned to.
func TestPacedWritesAreReassigned(t *testing.T) {
	r := lastingRig(t, 1, 20)
	r.server.SetQoS(governedPolicy(t))
	p := &paced{rig: r, Conn: r.lasting()}
	p.writes(t, 4)
	lost := p.Conn
	lost.Close()
	r.awaitLost(t, 1)
	b, err := r.join(lost, 5, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if code, _, _, err := b.LogoutOf(2, lost.CID); err != nil || code != 0 {
		t.Fatalf("logout for recovery: response %d, %v", code, err)
	}
	if err := b.TakeOver(lost); err != nil {
		t.Fatal(err)
	}
	p.Conn = b
	p.finish(t)
	for i := range p.tasks {
		if got := mustDo(t, b, initiator.Command{CDB: cdbRead16(uint64(i)*2048, 2048), InLen: 1 << 20}).In; !bytes.Equal(got, pattern(1<<20, byte(i))) {
			t.Errorf("write %d: read back other data", i)
		}
	}
}
