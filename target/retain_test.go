package target_test

import (
	"bytes"
	"errors"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
)

// lastingRig is a server at ErrorRecoveryLevel 2, whose sessions may have so many
// connections; what a lost one leaves waits for a number of seconds.
func lastingRig(t *testing.T, conns int, seconds uint32) *rig {
	o := rigOptions{offer: func(o *login.Offer) { o.DefaultTime2Wait, o.DefaultTime2Retain = 0, seconds }}
	o.config.Limits.Recovery, o.config.Limits.MaxConnections = 2, conns
	return newRig(t, o)
}

// lasting logs in at ErrorRecoveryLevel 2. No data come unasked.
func (r *rig) lasting(keys ...initiator.Key) *initiator.Conn {
	r.t.Helper()
	return r.leading(initiator.Options{Keys: append(initiator.Keys{
		{Name: "ErrorRecoveryLevel", Value: "2"}, {Name: "DefaultTime2Wait", Value: "0"}, {Name: "DefaultTime2Retain", Value: "20"},
		{Name: "InitialR2T", Value: "Yes"}, {Name: "ImmediateData", Value: "No"},
	}, keys...)})
}

// openWrite starts a write whose data were asked for and do not come.
func openWrite(t *testing.T, c *initiator.Conn, lba uint64) *initiator.Task {
	t.Helper()
	task := start(t, c, initiator.Command{CDB: cdbWrite16(lba, 8), Out: pattern(4096, byte(lba)), HoldData: true})
	for len(task.R2Ts) == 0 {
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
	}
	return task
}

func (r *rig) awaitLost(t *testing.T, n int) {
	t.Helper()
	eventually.Holds(t, "the loss of connections", func() bool {
		lost := 0
		for _, s := range r.server.Sessions() {
			for _, c := range s.Connections {
				if c.Lost {
					lost++
				}
			}
		}
		return lost == n
	})
}

// Time that runs out ends the tasks of a lost connection, and with the last one the
// session.
func TestRetentionEnds(t *testing.T) {
	t.Parallel()
	r := lastingRig(t, 2, 1)
	a := r.lasting()
	b, err := r.join(a, 1, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	task := openWrite(t, a, 0)
	a.Close() // that it is lost for a second may go unseen
	eventually.Holds(t, "the end of the retention", func() bool { return len(r.server.Sessions()[0].Connections) == 1 })
	code, _, _, err := b.LogoutOf(2, a.CID)
	if err != nil || code != 1 {
		t.Errorf("logout for recovery: response %d, %v, expected CID not found", code, err)
	}
	if code, err := b.TaskManagement(initiator.TaskRequest{Function: initiator.TaskReassign, Referenced: task}); err != nil || code != 1 {
		t.Errorf("TASK REASSIGN: response %d, %v, expected task does not exist", code, err)
	}
	attention(t, b, 0x47, 0x7f)
	openWrite(t, b, 8)
	b.Close()
	eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
	if _, err := r.join(b, 1, initiator.Options{}); err == nil {
		t.Error("a session that has ended goes on")
	}
}

// A session without connections is continued within its time: what it had stays, and
// it hears of nothing.
func TestSessionContinues(t *testing.T) {
	r := lastingRig(t, 1, 20)
	a := r.lasting()
	if err := a.Ping(nil); err != nil { // acknowledges all
		t.Fatal(err)
	}
	a.Close()
	r.awaitLost(t, 1)
	b, err := r.join(a, 5, initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
	data := pattern(300<<10, 3)
	mustDo(t, b, initiator.Command{CDB: cdbWrite16(0, 600), Out: data})
	if got := mustDo(t, b, initiator.Command{CDB: cdbRead16(0, 600), InLen: len(data)}).In; !bytes.Equal(got, data) {
		t.Fatal("read back other data")
	}
	if code, _, retain, err := b.LogoutOf(2, a.CID); err != nil || code != 0 || retain != 20 {
		t.Fatalf("logout for recovery: response %d, Time2Retain %d, %v", code, retain, err)
	}
	if n := len(r.server.Sessions()[0].Connections); n != 1 {
		t.Errorf("%d connections, expected 1", n)
	}
}

// A connection that logs itself out for recovery leaves its tasks.
func TestOwnLogoutForRecovery(t *testing.T) {
	r := lastingRig(t, 1, 20)
	a := r.lasting()
	openWrite(t, a, 0)
	if code, _, retain, err := a.LogoutOf(2, a.CID); err != nil || code != 0 || retain != 20 {
		t.Fatalf("response %d, Time2Retain %d, %v", code, retain, err)
	}
	if _, err := a.Step(0); !errors.Is(err, initiator.ErrClosed) {
		t.Fatal(err)
	}
	r.awaitLost(t, 1)
	b, err := r.join(a, 1, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.TakeOver(a); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the end of what has nothing left", func() bool { return len(r.server.Sessions()[0].Connections) == 1 })
}

// What ends a session ends what it retains, at once: a login in its place, an
// administrator, its own logout, a reset of the target.
func TestRetainedSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *rig){
		"reinstatement": func(t *testing.T, r *rig) { r.login(initiator.Options{}).Close() },
		"kick": func(t *testing.T, r *rig) {
			if n := r.server.Kick(func(target.SessionStats) bool { return true }); n != 1 {
				t.Errorf("%d sessions kicked, expected 1", n)
			}
		},
		"cold reset": func(t *testing.T, r *rig) {
			c := r.login(initiator.Options{ISID: [6]byte{0x80, 9}})
			if _, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.TargetColdReset}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := lastingRig(t, 1, 20)
			a := r.lasting()
			openWrite(t, a, 0)
			a.Close()
			r.awaitLost(t, 1)
			end(t, r)
			eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
		})
	}
	t.Run("logout", func(t *testing.T) {
		r := lastingRig(t, 2, 20)
		a := r.lasting()
		b, err := r.join(a, 1, initiator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		openWrite(t, a, 0)
		a.Close()
		r.awaitLost(t, 1)
		if code, err := b.Logout(0); err != nil || code != 0 {
			t.Fatalf("response %d, %v", code, err)
		}
		eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
	})
}

// A reset by another initiator ends a task that waits for a connection.
func TestResetEndsRetainedTasks(t *testing.T) {
	r := lastingRig(t, 1, 20)
	a := r.lasting()
	task := openWrite(t, a, 0)
	a.Close()
	r.awaitLost(t, 1)
	other := r.login(initiator.Options{ISID: [6]byte{0x80, 9}})
	if code, err := other.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil || code != 0 {
		t.Fatalf("reset: response %d, %v", code, err)
	}
	b, err := r.join(a, a.CID, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := b.TaskManagement(initiator.TaskRequest{Function: initiator.TaskReassign, Referenced: task}); err != nil || code != 1 {
		t.Errorf("TASK REASSIGN: response %d, %v, expected task does not exist", code, err)
	}
	attention(t, b, 0x29, 0x03)
}

// An initiator that loses one connection after the other leaves no more behind than
// it may, and the commands of those that it keeps go on.
func TestLostConnectionsAreBounded(t *testing.T) {
	r := lastingRig(t, 2, 20)
	a := r.lasting()
	for cid := range uint16(40) {
		b, err := r.join(a, cid+1, initiator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		openWrite(t, b, uint64(cid)*8)
		b.Close()
		eventually.Holds(t, "the loss", func() bool {
			s := r.server.Sessions()[0].Connections
			return s[len(s)-1].Lost
		})
		if cid >= 16 { // one has been ended for it
			attention(t, a, 0x47, 0x7f)
		}
	}
	s := r.server.Sessions()[0]
	if n := len(s.Connections) - 1; n != 16 || s.InFlight != 16 {
		t.Errorf("%d lost connections with %d tasks, expected 16", n, s.InFlight)
	}
	res, err := a.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
	if code, err := a.Logout(0); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
}

// Data that nobody acknowledges do not keep other reads waiting: the initiator is asked.
func TestReadsWaitForAcknowledgement(t *testing.T) {
	o := rigOptions{}
	o.config.Limits.Recovery, o.config.Limits.SessionMemory = 2, 512<<10
	r := newRig(t, o)
	c := r.lasting()
	var tasks []*initiator.Task
	for i := range 16 { // none of them says that another has come
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbRead16(uint64(i)*256, 256), InLen: 128 << 10}))
	}
	for _, task := range tasks {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	if c.Pings == 0 {
		t.Error("the initiator was not asked")
	}
}

// The connections of a session are told apart by what they carry.
func TestConnectionsAreCounted(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2)
	mustDo(t, conns[0], initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 1)})
	mustDo(t, conns[1], initiator.Command{CDB: cdbRead16(0, 16), InLen: 8192})
	r.counted()
	s := r.server.Sessions()[0]
	if got := s.Connections[0].Traffic; got.WrittenBytes != 4096 || got.ReadBytes != 0 {
		t.Errorf("first connection: %+v", got)
	}
	if got := s.Connections[1].Traffic; got.ReadBytes != 8192 || got.WrittenBytes != 0 {
		t.Errorf("second connection: %+v", got)
	}
	single := r.login(initiator.Options{ISID: [6]byte{0x80, 9}})
	mustDo(t, single, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096})
	r.counted()
	if got := r.server.Sessions()[1].Connections[0].Traffic.ReadBytes; got != 4096 {
		t.Errorf("the only connection of a session: %d bytes read, expected 4096", got)
	}
}

// Task management functions and text exchanges are reassigned like commands: those that
// were answered are answered again, those that are under way on the new connection.
func TestFunctionsAreReassigned(t *testing.T) {
	ram, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	o := rigOptions{store: store, offer: func(o *login.Offer) { o.DefaultTime2Wait, o.DefaultTime2Retain = 0, 20 }}
	o.config.Limits.Recovery, o.config.Limits.MaxConnections = 2, 1
	r := newRig(t, o)
	a := r.lasting()
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
	start(t, a, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096})
	eventually.Holds(t, "a read is under way", func() bool { return store.Held() == 1 })
	text := initiator.NewPDU(initiator.OpTextRequest, initiator.FlagFinal, []byte("SendTargets=\x00"))
	text.SetImmediate()
	exchange := a.NewITT()
	text.SetU32(initiator.AtITT, exchange)
	text.SetU32(initiator.AtTTT, initiator.NoTag)
	text.SetU32(initiator.AtCmdSN, a.CmdSN)
	text.SetU32(initiator.AtExpStatSN, a.ExpStatSN)
	if err := a.Send(text); err != nil {
		t.Fatal(err)
	}
	answered := taskRequest(t, a, initiator.ClearACA, initiator.NoTag, 0)
	under := taskRequest(t, a, initiator.LogicalUnitReset, initiator.NoTag, 0)
	for n := 0; n < 2; n++ { // both answers, which are not acknowledged
		if _, err := a.Receive(patience); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	r.awaitLost(t, 1)
	b, err := r.join(a, 1, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if code, _, _, err := b.LogoutOf(2, a.CID); err != nil || code != 0 {
		t.Fatalf("logout for recovery: response %d, %v", code, err)
	}
	functionComplete(t, b, taskRequest(t, b, initiator.TaskReassign, answered, 0))
	functionComplete(t, b, answered)
	functionComplete(t, b, taskRequest(t, b, initiator.TaskReassign, exchange, 0))
	if p, err := b.Receive(patience); err != nil || p.Opcode() != initiator.OpTextResponse || p.ITT() != exchange || !bytes.Contains(p.Data, []byte(testTarget)) {
		t.Errorf("found %v, %+v, expected the text response", err, p)
	}
	functionComplete(t, b, taskRequest(t, b, initiator.TaskReassign, under, 0))
	store.SetRules()
	store.Release(-1)
	functionComplete(t, b, under)
	eventually.Holds(t, "the end of what has nothing left", func() bool { return len(r.server.Sessions()[0].Connections) == 1 })
}
