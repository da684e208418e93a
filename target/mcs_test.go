package target_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// sharedRig is a server whose sessions may have four connections.
func sharedRig(t *testing.T, o rigOptions) *rig {
	o.config.Limits.MaxConnections = 4
	return newRig(t, o)
}

// leading opens a session of up to eight connections, of which the server grants
// four.
func (r *rig) leading(o initiator.Options) *initiator.Conn {
	r.t.Helper()
	o.Keys = append(o.Keys, initiator.Key{Name: "MaxConnections", Value: "8"})
	return r.login(o)
}

// join adds a connection to the session of c.
func (r *rig) join(c *initiator.Conn, cid uint16, o initiator.Options) (*initiator.Conn, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o.Target, o.CID = testTarget, cid
	n, err := c.Join(ctx, r.addr, o)
	if err == nil {
		r.t.Cleanup(func() { n.Close() })
	}
	return n, err
}

// shared opens a session of n connections with CIDs from 0 on.
func (r *rig) shared(n int, keys ...initiator.Key) []*initiator.Conn {
	r.t.Helper()
	conns := []*initiator.Conn{r.leading(initiator.Options{Keys: keys})}
	for cid := 1; cid < n; cid++ {
		c, err := r.join(conns[0], uint16(cid), initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"})
		if err != nil {
			r.t.Fatal(err)
		}
		conns = append(conns, c)
	}
	return conns
}

func mustDo(t *testing.T, c *initiator.Conn, cmd initiator.Command) *initiator.Result {
	t.Helper()
	res, err := c.Do(cmd)
	return mustGood(t, res, err)
}

// attention takes the one unit attention that a connection's end leaves.
func attention(t *testing.T, c *initiator.Conn, asc, ascq byte) {
	t.Helper()
	res, err := c.Command(make([]byte, 6), 0, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if k, a, q := res.SenseKey(); k != 6 || a != asc || q != ascq {
		t.Fatalf("sense %x/%02x/%02x, expected a unit attention %02x/%02x", k, a, q, asc, ascq)
	}
}

func TestFurtherConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(4)
	if got := conns[0].Params.MaxConnections; got != 4 {
		t.Fatalf("MaxConnections %d, expected 4", got)
	}
	for i, c := range conns { // what one writes, the next one reads
		data := pattern(1<<20, byte(i))
		mustDo(t, c, initiator.Command{CDB: cdbWrite16(8, 2048), Out: data})
		next := conns[(i+1)%len(conns)]
		if got := mustDo(t, next, initiator.Command{CDB: cdbRead16(8, 2048), InLen: len(data)}).In; !bytes.Equal(got, data) {
			t.Fatal("read back other data")
		}
	}
	s := r.server.Sessions()
	if len(s) != 1 || len(s[0].Connections) != 4 || s[0].Connections[3].CID != 3 || s[0].Connections[3].Remote == s[0].Remote {
		t.Fatalf("sessions: %+v", s)
	}
	for _, f := range []struct {
		name          string
		tsih, cid     uint16
		isid          byte
		class, detail byte
	}{
		{"one too many", conns[0].TSIH, 9, 0, 2, 6},
		{"of another initiator port", conns[0].TSIH, 9, 7, 2, 0x0a},
		{"of no session", conns[0].TSIH + 1, 9, 0, 2, 0x0a},
	} {
		isid := conns[0].ISID
		isid[5] += f.isid
		if got := r.refused(initiator.Options{TSIH: f.tsih, CID: f.cid, ISID: isid, CmdSN: conns[0].CmdSN}); got.Class != f.class || got.Detail != f.detail {
			t.Errorf("connection %s: status %02x%02x, expected %02x%02x", f.name, got.Class, got.Detail, f.class, f.detail)
		}
	}
	res, err := conns[2].Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
}

// Keys of the leading connection alone are refused on others, and hold for them.
func TestFurtherConnectionKeys(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	c := r.leading(initiator.Options{Keys: initiator.Keys{{Name: "MaxBurstLength", Value: "8192"}, {Name: "FirstBurstLength", Value: "4096"}}})
	n, err := r.join(c, 1, initiator.Options{Keys: initiator.Keys{{Name: "MaxRecvDataSegmentLength", Value: "4096"}}})
	if err != nil {
		t.Fatal(err)
	}
	data := pattern(64<<10, 3)
	mustDo(t, n, initiator.Command{CDB: cdbWrite16(0, 128), Out: data}) // the judge knows the bursts
	if got := mustDo(t, n, initiator.Command{CDB: cdbRead16(0, 128), InLen: len(data)}).In; !bytes.Equal(got, data) {
		t.Fatal("read back other data")
	}
	var bad *initiator.Violation // the answer Reject is no value for the judge
	if _, err := r.join(c, 2, initiator.Options{Keys: initiator.Keys{{Name: "MaxBurstLength", Value: "512"}}}); !errors.As(err, &bad) {
		t.Fatalf("MaxBurstLength on a further connection: %v, expected the answer Reject", err)
	}
	res, err := c.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
}

// The end of a connection ends its own tasks and no others; the commands that it
// did not bring are sent again on another one.
func TestConnectionLossLeavesTheOthers(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(3, initiator.Key{Name: "InitialR2T", Value: "Yes"}, initiator.Key{Name: "ImmediateData", Value: "No"})
	a, b, c := conns[0], conns[1], conns[2]
	data := pattern(4096, 9)
	kept := start(t, a, initiator.Command{CDB: cdbWrite16(0, 8), Out: data, HoldData: true})
	lost := start(t, b, initiator.Command{CDB: cdbWrite16(8, 8), Out: data, HoldData: true})
	for _, w := range []struct {
		c    *initiator.Conn
		task *initiator.Task
	}{{a, kept}, {b, lost}} {
		for len(w.task.R2Ts) == 0 {
			if _, err := w.c.Step(0); err != nil {
				t.Fatal(err)
			}
		}
	}
	hole := b.CmdSN
	b.CmdSN++ // it gets lost with the connection
	after := start(t, c, initiator.Command{CDB: cdbRead16(32, 8), InLen: 4096})
	early := start(t, b, initiator.Command{CDB: cdbRead16(32, 8), InLen: 4096}) // and so does this one
	if err := b.Ping(nil); err != nil {
		t.Fatal(err)
	}
	b.Close()
	eventually.Holds(t, "two connections", func() bool { return len(r.server.Sessions()[0].Connections) == 2 })
	next := c.CmdSN
	var again [2]*initiator.Task
	for i, sn := range []uint32{hole, early.CmdSN} {
		c.CmdSN = sn
		again[i] = start(t, c, initiator.Command{CDB: cdbRead16(32, 8), InLen: 4096})
	}
	c.CmdSN = next
	first, err := c.Wait(again[0])
	if err != nil {
		t.Fatal(err)
	}
	if k, asc, q := first.SenseKey(); k != 6 || asc != 0x47 || q != 0x7f {
		t.Errorf("sense %x/%02x/%02x, expected SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT", k, asc, q)
	}
	for _, task := range []*initiator.Task{after, again[1]} {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	if err := a.SendData(kept); err != nil {
		t.Fatal(err)
	}
	res, err := a.Wait(kept)
	mustGood(t, res, err)
	if h := r.server.Holding(); h.Sessions != 1 {
		t.Errorf("%d sessions, expected 1", h.Sessions)
	}
	a.Close()
	c.Close()
	eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
}

// What changes of the LUNs while the only connection of a session is in login, that
// connection finds changed.
func TestLUNsChangeWhileConnectionsChange(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	a := r.leading(initiator.Options{})
	portal := portals(t, r.server, "127.0.0.1:0")[0]
	if err := portal.Open(); err != nil {
		t.Fatal(err)
	}
	defer portal.Close()
	held, proceed := make(chan struct{}), make(chan struct{})
	portal.Accept(func(l target.LoginTransport) {
		go r.server.LoginDelayed(l, func() { close(held); <-proceed })
	})
	joined := make(chan *initiator.Conn, 1)
	go func() {
		b, err := a.Join(context.Background(), portal.Addr().String(), initiator.Options{Target: testTarget, CID: 1})
		if err != nil {
			t.Error(err)
		}
		joined <- b
	}()
	<-held
	a.Close()
	eventually.Holds(t, "one connection", func() bool { return len(r.server.Sessions()[0].Connections) == 1 })
	r.grant(target.LUNMapping{LUN: 3, LU: r.unit("added", nil)})
	close(proceed)
	b := <-joined
	if b == nil {
		return
	}
	defer b.Close()
	if got := numbers(reportLUNs(t, b)); !bytes.Equal(got, []byte{3}) {
		t.Errorf("found LUNs %v, expected those of now", got)
	}
	if got := testUnitReady(t, b, 0); got != [2]byte{0x25, 0} {
		t.Errorf("found sense %x of a LUN that is gone, expected LOGICAL UNIT NOT SUPPORTED", got)
	}
	r.remove(r.lu)
}

func TestLogoutsOfConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(4)
	logout := func(c *initiator.Conn, reason byte, cid uint16) byte {
		t.Helper()
		own := c.CID
		c.CID = cid
		defer func() { c.CID = own }()
		code, err := c.Logout(reason)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	ended := func(c *initiator.Conn) {
		t.Helper()
		if _, err := c.Step(0); !errors.Is(err, initiator.ErrClosed) {
			t.Fatalf("a connection that was logged out: %v, expected its end", err)
		}
	}
	if code := logout(conns[0], 1, 77); code != 1 {
		t.Errorf("no such CID: response %d, expected 1", code)
	}
	if code := logout(conns[0], 2, 1); code != 2 {
		t.Errorf("for recovery: response %d, expected 2", code)
	}
	if code := logout(conns[0], 1, 1); code != 0 {
		t.Errorf("another connection: response %d, expected 0", code)
	}
	ended(conns[1])
	if code := logout(conns[2], 1, 2); code != 0 {
		t.Errorf("itself: response %d, expected 0", code)
	}
	ended(conns[2])
	res, err := conns[0].Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
	if code := logout(conns[0], 0, 0); code != 0 {
		t.Errorf("the session: response %d, expected 0", code)
	}
	ended(conns[3])
	ended(conns[0])
	eventually.Finds(t, "what the server holds", target.Holding{}, r.server.Holding)
}

// A login with the CID of a connection replaces it, with its tasks.
func TestConnectionReinstatement(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2, initiator.Key{Name: "InitialR2T", Value: "Yes"}, initiator.Key{Name: "ImmediateData", Value: "No"})
	start(t, conns[1], initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 1), HoldData: true})
	if err := conns[1].Ping(nil); err != nil { // the command has come before it
		t.Fatal(err)
	}
	fresh, err := r.join(conns[0], 1, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conns[1].Step(0); err != nil { // the R2T may be in the buffer
		if !errors.Is(err, initiator.ErrClosed) {
			t.Fatal(err)
		}
	}
	attention(t, fresh, 0x47, 0x7f)
	for _, c := range []*initiator.Conn{conns[0], fresh} {
		res, err := c.Command(make([]byte, 6), 0, nil, 0)
		mustGood(t, res, err)
	}
	if n := len(r.server.Sessions()[0].Connections); n != 2 {
		t.Errorf("%d connections, expected 2", n)
	}
	// A login without TSIH replaces the session with all of them.
	r.login(initiator.Options{})
	for _, c := range []*initiator.Conn{conns[0], fresh} {
		if _, err := c.Step(0); err == nil {
			t.Error("a connection of a session that was replaced goes on")
		}
	}
}

// taskRequest is an immediate task management request without waiting.
func taskRequest(t *testing.T, c *initiator.Conn, function byte, referenced, refCmdSN uint32) (itt uint32) {
	t.Helper()
	p := initiator.NewPDU(initiator.OpTaskRequest, initiator.FlagFinal|function, nil)
	p.SetImmediate()
	itt = c.NewITT()
	p.SetU32(initiator.AtITT, itt)
	p.SetU32(initiator.AtTTT, referenced)
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	p.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	p.SetU32(initiator.AtMaxCmdSN, refCmdSN)
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	return itt
}

// functionComplete steps until the response of a task management function.
func functionComplete(t *testing.T, c *initiator.Conn, itt uint32) {
	t.Helper()
	for {
		p, err := c.Step(0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Opcode() == initiator.OpTaskResponse && p.ITT() == itt {
			if p.BHS[2] != 0 {
				t.Fatalf("response %d, expected function complete", p.BHS[2])
			}
			return
		}
	}
}

// sendMissing sends the command that is missing, by c, and waits for its end. The session's
// next CmdSN is next.
func sendMissing(t *testing.T, c *initiator.Conn, missing, next uint32) {
	t.Helper()
	c.CmdSN = missing
	task := start(t, c, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096})
	c.CmdSN = next
	res, err := c.Wait(task)
	mustGood(t, res, err)
}

// pinged waits until the target has asked for an answer on c, as often as it had and
// once more.
func pinged(t *testing.T, c *initiator.Conn, had int) {
	t.Helper()
	for c.Pings == had {
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
	}
}

// A reset waits for the commands before it, on whatever connection they come, and is
// answered when the initiator has seen what went out on the others.
func TestResetOverConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2)
	a, b := conns[0], conns[1]
	missing := a.CmdSN
	a.CmdSN++
	itt := taskRequest(t, a, initiator.LogicalUnitReset, initiator.NoTag, 0)
	if err := a.Ping(nil); err != nil { // it is still unanswered: Ping would complain of a foreign response
		t.Fatal(err)
	}
	sendMissing(t, b, missing, a.CmdSN)
	if err := a.Ping(nil); err != nil {
		t.Fatal(err)
	}
	pinged(t, b, 0)
	functionComplete(t, a, itt)
	attention(t, b, 0x29, 0x03)

	// A target reset takes the places of commands that have not come.
	missing = a.CmdSN
	a.CmdSN += 2
	itt = taskRequest(t, a, initiator.TargetWarmReset, initiator.NoTag, 0)
	pinged(t, b, 1)
	functionComplete(t, a, itt)
	b.CmdSN = missing
	start(t, b, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}) // late, to be ignored
	b.CmdSN = missing + 2
	attention(t, b, 0x29, 0x03)
}

// A target reset takes the places of all commands that have not come, also of those
// behind one that has come before its turn.
func TestResetBehindAnEarlyCommand(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2)
	a, b := conns[0], conns[1]
	missing := a.CmdSN
	b.CmdSN = missing + 1
	start(t, b, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}) // early, to be ended
	if err := b.Ping(nil); err != nil {
		t.Fatal(err)
	}
	pings := b.Pings
	a.CmdSN = missing + 3
	itt := taskRequest(t, a, initiator.TargetWarmReset, initiator.NoTag, 0)
	pinged(t, b, pings)
	functionComplete(t, a, itt)
	b.CmdSN = missing + 2
	start(t, b, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}) // late, to be ignored
	b.CmdSN = missing + 3
	attention(t, b, 0x29, 0x03)
}

// ABORT TASK of a command that has not come takes its place.
func TestAbortTaskBeforeItsCommand(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2)
	a, b := conns[0], conns[1]
	missing := a.CmdSN
	a.CmdSN++
	functionComplete(t, a, taskRequest(t, a, initiator.AbortTask, 0x4711, missing))
	res, err := a.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
	next := a.CmdSN
	b.CmdSN = missing
	p := initiator.NewPDU(initiator.OpSCSICommand, initiator.FlagFinal, nil)
	p.SetU32(initiator.AtITT, 0x4711)
	p.SetU32(initiator.AtCmdSN, missing)
	p.SetU32(initiator.AtExpStatSN, b.ExpStatSN)
	if err := b.Send(p); err != nil {
		t.Fatal(err)
	}
	b.CmdSN = next
	if err := b.Ping(nil); err != nil {
		t.Fatal(err)
	}
}

// Data on a connection that the command did not come by ends that connection.
func TestDataOnAnotherConnection(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2, initiator.Key{Name: "InitialR2T", Value: "Yes"}, initiator.Key{Name: "ImmediateData", Value: "No"})
	a, b := conns[0], conns[1]
	task := start(t, a, initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 1), HoldData: true})
	for len(task.R2Ts) == 0 {
		if _, err := a.Step(0); err != nil {
			t.Fatal(err)
		}
	}
	p := b.DataOut(task, task.R2Ts[0].TTT(), 0, 0, task.Command.Out)
	p.BHS[1] |= initiator.FlagFinal
	if err := b.Send(p); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Step(0); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected the end of the connection", err)
	}
	if err := a.SendData(task); err != nil {
		t.Fatal(err)
	}
	res, err := a.Wait(task)
	mustGood(t, res, err)
}

// Logins, losses and reinstatements at any time leave nothing behind.
func TestConnectionsComeAndGo(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	random := rand.New(rand.NewPCG(3, 4))
	lead := r.leading(initiator.Options{})
	others := map[uint16]*initiator.Conn{}
	for i := range 60 {
		cid := uint16(1 + random.IntN(3))
		c := others[cid]
		switch {
		case c == nil || random.IntN(3) == 0:
			n, err := r.join(lead, cid, initiator.Options{})
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			others[cid] = n
		case random.IntN(2) == 0:
			c.Close()
			delete(others, cid)
			want := 1 + len(others)
			eventually.Holds(t, fmt.Sprint(want, " connections"), func() bool { return len(r.server.Sessions()[0].Connections) == want })
		default:
			mustDo(t, c, initiator.Command{CDB: cdbWrite16(uint64(random.IntN(100)), 8), Out: pattern(4096, byte(i))})
		}
	}
	res, err := lead.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
}

// TestPlacesOutliveTheirConnection: the place of a command that its initiator has
// aborted before its turn stays taken when the connection ends that asked for that, or
// that the command came by: nobody will send it again.
func TestPlacesOutliveTheirConnection(t *testing.T) {
	for _, came := range []bool{false, true} {
		for _, function := range []byte{initiator.AbortTask, initiator.AbortTaskSet} {
			if !came && function == initiator.AbortTaskSet {
				continue // it speaks of no command that has not come
			}
			r := sharedRig(t, rigOptions{})
			conns := r.shared(3)
			a, b, c := conns[0], conns[1], conns[2]
			missing, referenced := a.CmdSN, uint32(0x4711)
			if came {
				b.CmdSN = missing + 1
				referenced = start(t, b, initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 1)}).ITT
				if err := b.Ping(nil); err != nil {
					t.Fatal(err)
				}
			}
			a.CmdSN = missing // the function is numbered before what is missing, and waits for nothing
			if function == initiator.AbortTask {
				a.CmdSN = missing + 2
			}
			itt := taskRequest(t, a, function, referenced, missing+1)
			if function == initiator.AbortTaskSet {
				for _, o := range []*initiator.Conn{b, c} {
					pinged(t, o, o.Pings)
				}
			}
			functionComplete(t, a, itt)
			a.Close()
			b.Close()
			eventually.Holds(t, "one connection", func() bool { return len(r.server.Sessions()[0].Connections) == 1 })
			sendMissing(t, c, missing, missing+2)
			res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096) // the next one, behind the place
			if err != nil || !bytes.Equal(mustGood(t, res, err).In, make([]byte, 4096)) {
				t.Errorf("found %v, %+v", err, res)
			}
		}
	}
}
