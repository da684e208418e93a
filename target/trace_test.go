package target_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/pdu"
)

// traced begins to trace the only session that has a target.
func (r *rig) traced() *target.Trace {
	r.t.Helper()
	for _, s := range r.server.Sessions() {
		if s.Target != "" {
			tr, err := r.server.Trace(s.TSIH)
			if err != nil {
				r.t.Fatal(err)
			}
			return tr
		}
	}
	r.t.Fatal("found no session")
	return nil
}

func tracedOpcodes(tr *target.Trace) (ops []pdu.Opcode, missing int) {
	before := time.Time{}
	for {
		p, at, gone, ok := tr.Next()
		if !ok {
			return ops, missing
		}
		if at.Before(before) {
			panic("time goes backwards")
		}
		before = at
		missing += gone
		ops = append(ops, p.BHS.Opcode())
	}
}

// TestTrace: what is received and sent is traced in its order; when nobody reads, what there
// is no room for is counted, and the session goes on; it ends with the session.
func TestTrace(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	tr := r.traced()
	if err := c.Ping(nil); err != nil {
		t.Fatal(err)
	}
	if ops, missing := tracedOpcodes(tr); len(ops) != 2 || ops[0] != pdu.OpNOPOut || ops[1] != pdu.OpNOPIn || missing != 0 {
		t.Errorf("found %v, %d missing", ops, missing)
	}
	const pings = 3000
	for range pings {
		if err := c.Ping(nil); err != nil {
			t.Fatal(err)
		}
	}
	ops, missing := tracedOpcodes(tr)
	if len(ops)+missing+tr.Missing() != 2*pings || tr.Missing() != 2*pings-len(ops) || len(ops) != 4096 {
		t.Errorf("found %d PDUs, %d missing before some and %d behind, expected %d", len(ops), missing, tr.Missing(), 2*pings)
	}
	if err := c.Ping(nil); err != nil {
		t.Fatal(err)
	}
	if ops, missing := tracedOpcodes(tr); len(ops) != 2 || missing != 2*pings-4096 || tr.Missing() != 0 {
		t.Errorf("found %v, %d missing and %d behind", ops, missing, tr.Missing())
	}
	if _, err := c.Logout(0); err != nil {
		t.Fatal(err)
	}
	<-tr.Ended()
	if ops, _ := tracedOpcodes(tr); len(ops) != 2 || ops[1] != pdu.OpLogoutResponse {
		t.Errorf("found %v", ops)
	}
	tr.Close()
}

// TestTraceIsClosed: a session is traced once at a time, and not at all after the trace is
// closed; only so many are.
func TestTraceIsClosed(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	tr := r.traced()
	tsih := tr.Session().TSIH
	if _, err := r.server.Trace(tsih); !errors.Is(err, target.ErrTraced) {
		t.Errorf("found %v", err)
	}
	if _, err := r.server.Trace(tsih + 100); !errors.Is(err, target.ErrNoSession) {
		t.Errorf("found %v", err)
	}
	tr.Close()
	if err := c.Ping(nil); err != nil { // after what Close has posted
		t.Fatal(err)
	}
	tracedOpcodes(tr)
	if err := c.Ping(nil); err != nil {
		t.Fatal(err)
	}
	if ops, _ := tracedOpcodes(tr); len(ops) != 0 {
		t.Errorf("found %v", ops)
	}
	var traces []*target.Trace
	for i := range 8 {
		o := initiator.Options{}
		o.ISID = [6]byte{0x80, 0, 0, 0, 1, byte(i)}
		r.login(o)
		all := r.server.Sessions()
		tr, err := r.server.Trace(all[len(all)-1].TSIH)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, tr)
	}
	if _, err := r.server.Trace(tsih); !errors.Is(err, target.ErrManyTraces) {
		t.Errorf("found %v", err)
	}
	for _, tr := range traces {
		tr.Close()
	}
	next, err := r.server.Trace(tsih)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	eventually.Holds(t, "the next trace sees what is sent", func() bool {
		if err := c.Ping(nil); err != nil {
			t.Fatal(err)
		}
		ops, _ := tracedOpcodes(next)
		return len(ops) > 0
	})
}

// TestTracesDoNotAllocate: nothing is allocated for the PDUs of a session that is traced,
// whether there is room for them or not.
func TestTracesDoNotAllocate(t *testing.T) {
	const depth, size, rounds = 32, 4096, 50
	r := newRig(t, rigOptions{})
	login := r.login(initiator.Options{CmdSN: 1})
	tr := r.traced()
	defer tr.Close()
	allowed := uint64(rounds * depth / 50)
	batch := newBatch(t, login, false, depth, size)
	for range 2 {
		if n := mallocs(batch, 10, rounds, allowed, 0); n > allowed {
			t.Errorf("%d allocations in %d commands", n, rounds*depth)
		}
	}
	if ops, _ := tracedOpcodes(tr); len(ops) != 4096 || tr.Missing() == 0 {
		t.Errorf("found %d PDUs, %d missing", len(ops), tr.Missing())
	}
}

// TestTraceOfConnections: a trace has the PDUs of all connections of a session, with the
// digests of some, in one order, and tells a connection from the one that took its place.
func TestTraceOfConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(3)
	tr := r.traced()
	defer tr.Close()
	for range 5 {
		for _, c := range conns {
			if err := c.Ping([]byte("digested")); err != nil {
				t.Fatal(err)
			}
		}
	}
	by := map[uint16]*target.Connection{}
	for i := range 5 * 2 * len(conns) {
		p, _, missing, ok := tr.Next()
		if want := uint16(i / 2 % len(conns)); !ok || missing != 0 || p.CID != want || p.Way != target.PDUReceived && p.Way != target.PDUSent {
			t.Fatalf("PDU %d: found %+v, %d missing, %v, expected one of connection %d", i, p, missing, ok, want)
		}
		if was := by[p.CID]; was != nil && was != p.Connection() {
			t.Errorf("PDU %d: found another connection %d", i, p.CID)
		}
		by[p.CID] = p.Connection()
	}
	again, err := r.join(conns[0], 1, initiator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Ping(nil); err != nil {
		t.Fatal(err)
	}
	var last target.TracedPDU
	for p, _, _, ok := tr.Next(); ok; p, _, _, ok = tr.Next() {
		last = p
	}
	_, was := by[1].Ends()
	if last.CID != 1 || last.Connection() == by[1] {
		t.Fatalf("found %+v of the connection that was replaced, expected another", last)
	}
	if _, is := last.Connection().Ends(); is == was {
		t.Errorf("found %v twice", is)
	}
}

// TestTraceMigrates: a trace goes with its session from one event thread to another, and
// misses nothing on the way.
func TestTraceMigrates(t *testing.T) {
	var log eventually.Output
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, rigOptions{lus: 2, config: target.Config{Threads: 2, Logger: logger}})
	c := r.login(initiator.Options{})
	if err := c.Ready(1); err != nil {
		t.Fatal(err)
	}
	tr := r.traced()
	defer tr.Close()
	commands, received, answered := 0, 0, 0
	for until := time.Now().Add(patience); log.Count("connection moved") < 4; {
		if time.Now().After(until) {
			t.Fatal("the connection has not moved four times")
		}
		res, err := c.Command(cdbRead16(3, 1), uint64(1-log.Count("connection moved")%2), nil, 512)
		mustGood(t, res, err)
		commands++
		for p, _, missing, ok := tr.Next(); ok; p, _, missing, ok = tr.Next() {
			switch {
			case missing != 0:
				t.Fatalf("%d PDUs are missing", missing)
			case p.BHS.Opcode() == pdu.OpSCSICommand:
				received++
			case p.BHS.Opcode() == pdu.OpDataIn:
				answered++
			}
		}
	}
	if received != commands || answered != commands {
		t.Errorf("found %d commands and %d answers, expected %d", received, answered, commands)
	}
}
