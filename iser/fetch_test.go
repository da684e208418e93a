package iser_test

import (
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// fetching has a write whose RDMA Read does not end while the device holds it, and
// whose data are there.
func (w *world) fetching(t *testing.T, c *initiator.Conn, lba int) *initiator.Task {
	t.Helper()
	task, err := c.Start(initiator.Command{CDB: write16(lba, 512), Out: pattern(256<<10, 1), Attr: initiator.AttrSimple, HoldData: true})
	if err != nil {
		t.Fatal(err)
	}
	for len(task.R2Ts) == 0 {
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SendData(task); err != nil {
		t.Fatal(err)
	}
	return task
}

// asked sends a request that goes ahead of all others.
func asked(t *testing.T, c *initiator.Conn, opcode, flags byte) *initiator.PDU {
	t.Helper()
	p := initiator.NewPDU(opcode, initiator.FlagFinal|flags, nil)
	p.SetU32(initiator.AtITT, c.NewITT())
	if opcode == initiator.OpTaskRequest {
		p.SetU32(initiator.AtTTT, initiator.NoTag)
	}
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	p.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	p.SetImmediate()
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// answered waits for the response to a request and returns its code.
func answered(t *testing.T, c *initiator.Conn, request *initiator.PDU) byte {
	t.Helper()
	for {
		p, err := c.Step(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if p.ITT() == request.ITT() {
			return p.BHS[2]
		}
	}
}

// Functions that end the tasks of one or of all sessions are answered when no RDMA
// Read for them is under way: from then on the initiators' memory is their own.
func TestResetsDuringFetch(t *testing.T) {
	for _, f := range []struct {
		name      string
		function  byte
		others    bool // tasks of the other session end
		attention byte // additional sense code, of the asking session
	}{
		{"ABORT TASK SET", initiator.AbortTaskSet, false, 0},
		{"CLEAR TASK SET", initiator.ClearTaskSet, true, 0},
		{"LOGICAL UNIT RESET", initiator.LogicalUnitReset, true, 0x29},
		{"TARGET WARM RESET", initiator.TargetWarmReset, true, 0x29},
	} {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t, options{})
			a, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
			b, _ := w.ready(t, 2, isertest.Options{Invalidate: true})
			w.server.Device(0).Hold(true)
			mine, theirs := w.fetching(t, a, 0), w.fetching(t, b, 1024)
			request := asked(t, a, initiator.OpTaskRequest, f.function)
			w.noAnswerBeforePing(t, a, request)
			w.server.Device(0).Hold(false)
			if code := answered(t, a, request); code != 0 {
				t.Errorf("response %d", code)
			}
			a.Forget(mine)
			if f.attention != 0 {
				if r, err := a.Command(make([]byte, 6), 0, nil, 0); err != nil || r.Sense == nil || r.Sense[12] != f.attention {
					t.Errorf("found %+v, %v; expected a unit attention", r, err)
				}
			}
			write(t, a, 0, pattern(64<<10, 2))
			if f.others {
				b.Forget(theirs)
				if err := b.Ping(nil); err != nil {
					t.Error(err)
				}
				if r, err := b.Command(make([]byte, 6), 0, nil, 0); err != nil || r.Sense == nil {
					t.Errorf("found %+v, %v; expected a unit attention", r, err)
				}
			} else if r, err := b.Wait(theirs); err != nil || r.Status != 0 {
				t.Errorf("the other's write: %+v, %v", r, err)
			}
			expect(t, a, 0, pattern(64<<10, 2))
		})
	}
}

// A logout in the middle of RDMA Reads is answered when they have ended, and the
// connection then ends in order.
func TestLogoutDuringFetch(t *testing.T) {
	posted := make(chan verbs.Flags, 1)
	w := newWorld(t, options{fabric: fake.Options{Posted: func(work fake.Work) {
		if len(work.Inline) > 28 && work.Inline[28]&0x3f == 0x26 { // Logout Response
			posted <- work.WR.Flags
		}
	}}})
	a, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	b, _ := w.ready(t, 2, isertest.Options{Invalidate: true})
	w.server.Device(0).Hold(true)
	task := w.fetching(t, a, 0)
	request := asked(t, a, initiator.OpLogout, 0)
	if <-posted&verbs.FlagFence == 0 {
		t.Error("the response does not wait for RDMA Reads")
	}
	w.server.Device(0).Hold(false)
	if code := answered(t, a, request); code != 0 {
		t.Errorf("response %d", code)
	}
	a.Forget(task)
	eventually.Finds(t, "connections", 1, w.connections)
	write(t, b, 0, pattern(64<<10, 2))
	expect(t, b, 0, pattern(64<<10, 2))
}

// A connection that fails in the middle of RDMA Reads ends at once, with one that
// comes back in its place.
func TestReturnDuringFetch(t *testing.T) {
	w := newWorld(t, options{})
	a, wire := w.ready(t, 1, isertest.Options{Invalidate: true})
	w.server.Device(0).Hold(true)
	w.fetching(t, a, 0)
	wire.Close()
	w.server.Device(0).Hold(false)
	b, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	write(t, b, 0, pattern(64<<10, 2))
	expect(t, b, 0, pattern(64<<10, 2))
	eventually.Finds(t, "connections", 1, w.connections)
}
