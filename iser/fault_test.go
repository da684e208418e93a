package iser_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// Whichever entry of either send queue fails, from the first Login Response to the
// last of the work, the connection ends and gives all back.
func TestEveryPoint(t *testing.T) {
	for _, host := range []string{"target", "initiator"} {
		t.Run(host, func(t *testing.T) {
			var at atomic.Int64
			var hit atomic.Bool
			fault := func(work fake.Work) verbs.Status {
				if work.Host == host && int64(work.Number) == at.Load() {
					hit.Store(true)
					return verbs.StatusRetryExceeded
				}
				return verbs.StatusOK
			}
			w := newWorld(t, options{fabric: fake.Options{Fault: fault}})
			for n := range int64(64) {
				at.Store(n)
				hit.Store(false)
				err := w.converse(n)
				if hit.Load() != (err != nil) {
					t.Fatalf("entry %d failed: %v, and the conversation ended with %v", n, hit.Load(), err)
				}
				eventually.Finds(t, "connections", 0, w.connections)
				if err == nil {
					if n < 8 {
						t.Fatalf("the conversation was over after %d entries", n)
					}
					return
				}
			}
			t.Fatal("the conversation did not come to its end")
		})
	}
}

// converse logs in, works, and ends.
func (w *world) converse(n int64) error {
	wire, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr, Invalidate: n%2 == 0})
	if err != nil {
		return err
	}
	defer wire.Close()
	c := initiator.NewConn(wire)
	if err := c.Login(initiator.Options{ISID: isid(1), Target: testTarget}); err != nil {
		return err
	}
	if err := c.Ready(0); err != nil {
		return err
	}
	for _, cmd := range []initiator.Command{
		{CDB: write16(0, 8), Out: make([]byte, 4096)}, {CDB: write16(0, 256), Out: make([]byte, 128<<10)}, {CDB: read16(0, 1024), InLen: 512 << 10},
	} {
		cmd.Attr = initiator.AttrSimple
		if _, err := c.Do(cmd); err != nil {
			return err
		}
	}
	return c.Ping([]byte("ping"))
}

// A device that never gives back the receives of a failed queue pair holds up
// nothing, and nobody is warned of it.
func TestReceivesThatNeverComeBack(t *testing.T) {
	w := newWorld(t, options{fabric: fake.Options{Deaf: true}})
	c, wire := w.ready(t, 1, isertest.Options{})
	write(t, c, 0, pattern(64<<10, 1))
	wire.Close()
	eventually.Finds(t, "connections", 0, w.connections)
	if w.log.warned.Load() > 0 {
		t.Error("the receives were waited for until the last bound")
	}
}

// A device that is removed takes its connections along, and what it had is freed
// while the server goes on.
func TestDeviceRemoval(t *testing.T) {
	w := newWorld(t, options{})
	w.log.allowed["RDMA device is being removed, or has failed: its connections are closed"] = true
	w.log.allowed["iSER portal closed: its RDMA device is being removed"] = true
	c, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	tcp := w.overTCP(t, initiator.Options{ISID: isid(2)})
	write(t, c, 0, pattern(64<<10, 1))
	if _, err := c.Start(initiator.Command{CDB: write16(0, 512), Out: make([]byte, 256<<10), Attr: initiator.AttrSimple}); err != nil {
		t.Fatal(err)
	}
	w.server.Device(0).Remove()
	eventually.Holds(t, "the device is freed", func() bool { return w.stats().Registered == 0 && w.stats().Connections == 0 })
	if left := w.server.Device(0).Objects(); left != 0 {
		t.Errorf("%d objects of the device are left", left)
	}
	if err := tcp.Ready(0); err != nil {
		t.Errorf("over TCP: %v", err)
	}
}

// An ABORT TASK in the middle of RDMA Reads is answered when they have ended, not
// before: the initiator takes its memory away then.
func TestAbortDuringFetch(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	w.server.Device(0).Hold(true)
	task := w.fetching(t, c, 0)
	abort := initiator.NewPDU(initiator.OpTaskRequest, initiator.FlagFinal|initiator.AbortTask, nil)
	abort.SetU32(initiator.AtITT, c.NewITT())
	abort.SetU32(initiator.AtTTT, task.ITT)
	abort.SetU32(initiator.AtCmdSN, c.CmdSN)
	abort.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	abort.SetImmediate()
	if err := c.Send(abort); err != nil {
		t.Fatal(err)
	}
	w.noAnswerBeforePing(t, c, abort)
	w.server.Device(0).Hold(false)
	for {
		p, err := c.Step(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if p.ITT() == task.ITT {
			t.Fatal("an aborted task was answered")
		}
		if p.Opcode() == initiator.OpTaskResponse {
			if p.ITT() != abort.ITT() || p.BHS[2] != 0 {
				t.Errorf("response %#x", p.BHS[2])
			}
			break
		}
	}
	c.Forget(task)
	write(t, c, 0, pattern(64<<10, 2))
	expect(t, c, 0, pattern(64<<10, 2))
}

// noAnswerBeforePing: what is sent after the request is answered first.
func (w *world) noAnswerBeforePing(t *testing.T, c *initiator.Conn, request *initiator.PDU) {
	t.Helper()
	ping := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	ping.SetU32(initiator.AtITT, c.NewITT())
	ping.SetU32(initiator.AtTTT, initiator.NoTag)
	ping.SetU32(initiator.AtCmdSN, c.CmdSN)
	ping.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	ping.SetImmediate()
	if err := c.Send(ping); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := c.Step(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		switch p.ITT() {
		case request.ITT():
			t.Fatal("the request was answered while RDMA Reads of its task were under way")
		case ping.ITT():
			return
		}
	}
}

// Initiators that end at any moment of the connection's making, in any order of
// events, leave nothing.
func TestEarlyEnds(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, options{fabric: fake.Options{Seed: seed}})
		if _, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr, Depth: -1}); err == nil {
			t.Error("connected without RDMA Reads")
		}
		for end := range 3 {
			wire, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr})
			if err != nil {
				t.Fatal(err)
			}
			c := initiator.NewConn(wire)
			switch end {
			case 1: // its request is on the way
				go func() { _ = c.Login(initiator.Options{ISID: isid(1), Target: testTarget}) }()
			case 2:
				if err := c.Login(initiator.Options{ISID: isid(1), Target: testTarget}); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			wire.Close()
		}
		eventually.Finds(t, "connections", 0, w.connections)
	}
}

// At any time the initiator may send all that the window lets it, and some
// immediate PDUs, and finds a receive for each. Commands that wait for the connection's
// turn have come already, and keep the receives that they came by.
func TestReceivesForTheWindow(t *testing.T) {
	var mu sync.Mutex
	least, checked := 1<<30, 0
	before := map[uint32]int{} // receives that came before a connection's CmdSN 0
	posted := func(work fake.Work) {
		if work.Host != "target" || len(work.Inline) < 76 || work.Inline[28]&0x3f == 0x23 { // no Login Response
			return
		}
		bhs := work.Inline[28:]
		exp := int(binary.BigEndian.Uint32(bhs[28:]))
		window := int(binary.BigEndian.Uint32(bhs[32:])) - exp + 1
		mu.Lock()
		defer mu.Unlock()
		if n, ok := before[work.QP]; !ok || int(work.Polled)-exp < n {
			before[work.QP] = int(work.Polled) - exp
		}
		window -= int(work.Polled) - exp - before[work.QP]
		least, checked = min(least, work.Receives-window), checked+1
	}
	w := newWorld(t, options{fabric: fake.Options{Posted: posted}, store: ram(t)})
	for n, v := range workloads {
		_, wire := w.ready(t, byte(n), isertest.Options{Depth: 3})
		d := wire.Drive(v.write, 64, v.size, 512, v.immediate)
		for range 10 {
			w.check(d.Batch())
		}
		d.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	if least < 8 || checked < 3000 {
		t.Errorf("%d receives beyond the window at worst, of %d PDUs sent; expected 8 or more, of 3000", least, checked)
	}
}

// Only responses to commands that named memory invalidate, each its own key.
func TestInvalidatesOnlyItsOwn(t *testing.T) {
	w := newWorld(t, options{})
	c, wire := w.ready(t, 1, isertest.Options{Invalidate: true})
	before := wire.Invalidated()
	write(t, c, 0, pattern(512, 1))                                // all immediate
	write(t, c, 0, pattern(64<<10, 1))                             // 1
	expect(t, c, 0, pattern(64<<10, 1))                            // 2
	do(t, c, initiator.Command{CDB: read16(1<<40, 1), InLen: 512}) // 3: an error
	if err := c.Ready(0); err != nil {
		t.Error(err)
	}
	if err := c.Ping([]byte("ping")); err != nil {
		t.Error(err)
	}
	if _, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil {
		t.Error(err)
	}
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
	if n := wire.Invalidated() - before; n != 3 {
		t.Errorf("%d keys were invalidated, expected 3", n)
	}
}
