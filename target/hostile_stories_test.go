package target_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// stories are the attacks that are more than a few PDUs; pduAttacks is one of
// them and a table itself.
var stories = []struct {
	name string
	run  func(*field)
}{
	{"garbage instead of a login", garbage},
	{"login PDUs of every wrong length", wrongLogins},
	{"logins that stop half way", halfLogins},
	{"half-open connections beyond the limit", halfOpen},
	{"one byte at a time in login", trickledLogin},
	{"one byte at a time in full feature phase", trickledCommands},
	{"endless login text", endlessLogin},
	{"single PDUs", pduAttacks},
	{"every opcode with random bodies", everyOpcode},
	{"random CDBs", randomCDBs},
	{"the window overrun by thousands", overrun},
	{"commands out of order with much data", outOfOrder},
	{"immediate commands without end", immediateFlood},
	{"NOPs of 256 KiB, answers never read", nopFlood},
	{"reads, answers never read, pings sent", deafReader},
	{"rejects, never read", rejectFlood},
	{"answers read one byte at a time", slowReader},
	{"task management without end", managementFlood},
	{"a task aborted twice", abortedTwice},
	{"resets of each other without end", resetWar},
	{"logins that wait for the session that they replace", crowdedReinstatement},
	{"SendTargets without end", sendTargetsFlood},
	{"one text asks for SendTargets a thousand times", sendTargetsBomb},
	{"unfinished texts", unfinishedText},
	{"closed in the middle of every PDU", closedMidway},
	{"half-close with answers pending", halfClose},
	{"logout and then more", afterLogout},
	{"reinstatement storm", reinstatementStorm},
	{"the TSIH of others", strangeTSIH},
	{"writes held in the store and abrupt ends", heldWrites},
	{"immediate data while memory is short", stashFlood},
	{"sessions beyond the limit", manySessions},
	{"discovery sessions that stay", manyDiscoveries},
	{"connections against each other", connectionWar},
	{"connections lost without end", lostWithoutEnd},
	{"reads, never acknowledged", neverAcknowledged},
	{"SNACKs without end, answers never read", snackFlood},
	{"Data-Out without data", emptyData},
	{"Data-Out of a few bytes", trickledData},
	{"Data-Out of a few bytes, unasked", trickledUnasked},
	{"bursts now and then", trickledBursts},
	{"a command that never ends", trickledCommand},
}

func deadline(c net.Conn, d time.Duration) { c.SetDeadline(time.Now().Add(d)) }

// expectEnd reads until the server closes.
func (f *field) expectEnd(c net.Conn) {
	f.Helper()
	deadline(c, patience)
	if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		f.Error("the server does not close the connection")
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// trickle writes b byte by byte until the server has enough of it.
func trickle(c net.Conn, b []byte, pause time.Duration) {
	for i := range b {
		if _, err := c.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(pause) // it is the slowness that is tried
	}
}

func trickledCommands(f *field) {
	c := f.enemy(initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"})
	var wire bytes.Buffer
	w := initiator.NewEstablished(&wire, c.Params, c.CmdSN, c.ExpStatSN)
	f.send(w, write(w, 0, pattern(700, 1)[:512]), write(w, 8, pattern(1024, 2)))
	c.CmdSN = w.CmdSN
	trickle(c.Transport().(net.Conn), wire.Bytes(), 0)
	if !f.answers(c) {
		f.Errorf("a slow but correct sender is thrown out: %s", f.alarm.lastLine())
	}
}

func everyOpcode(f *field) {
	r := rand.New(rand.NewPCG(1, 2))
	var c *initiator.Conn
	for op := range 64 {
		for range 3 {
			if c == nil {
				c = f.enemy(initiator.Options{})
			}
			p := initiator.NewPDU(byte(op), byte(r.Uint32()), pattern(r.IntN(100), byte(op)))
			for i := 8; i < 48; i++ {
				p.BHS[i] = byte(r.Uint32())
			}
			if op == initiator.OpTaskRequest {
				p.BHS[1] = 0x81 // the others would end what the story does itself
			}
			p.SetU32(initiator.AtITT, uint32(op)<<8)
			p.SetU32(initiator.AtCmdSN, c.CmdSN)
			c.CmdSN++
			f.send(c, p)
			if !f.answers(c) {
				c.Close()
				c = nil
			} else {
				c.CmdSN = c.ExpCmdSN
			}
		}
	}
}

func randomCDBs(f *field) {
	r := rand.New(rand.NewPCG(3, 4))
	c := f.enemy(initiator.Options{})
	for op := range 256 {
		if op == 0x1b {
			continue // START STOP UNIT does what it should
		}
		flags := []byte{0x80, 0xc0, 0xa0, 0xe0}[op%4]
		var data []byte
		if flags&0x20 != 0 {
			data = pattern(r.IntN(512), byte(op))
		}
		cdb := make([]byte, 16)
		for i := range cdb {
			cdb[i] = byte(r.Uint32() & r.Uint32())
		}
		cdb[0] = byte(op)
		p := command(c, cdb, flags, uint32(len(data)+r.IntN(2)*1000), data)
		if op%16 == 3 {
			p.SetU32(initiator.AtLUN, r.Uint32())
		}
		f.send(c, p)
		if op%16 == 15 {
			f.abortAll(c)
			if !f.answers(c) {
				f.Fatalf("the session ended before operation code %#x", op)
			}
		}
	}
}

// abortAll ends what waits for data that never comes.
func (f *field) abortAll(c *initiator.Conn) {
	p := manage(c, initiator.AbortTaskSet, initiator.NoTag)
	f.send(c, p)
	f.hear(c, p.ITT())
}

// hold makes the store keep all operations of a kind until letGo.
func (f *field) hold(k backstore.Kind) {
	f.store.SetRules(errstore.Rule{Kinds: []backstore.Kind{k}, Hold: true})
}

func (f *field) letGo() {
	f.store.SetRules()
	f.store.Release(-1)
}

func overrun(f *field) {
	f.hold(backstore.Write)
	c := f.enemy(initiator.Options{})
	for range 3000 {
		f.send(c, write(c, 0, make([]byte, 512)))
	}
	if !f.answers(c) {
		f.Error("the session ended")
	}
	if n := f.store.Held(); n > fieldLimits.QueueDepth {
		f.Errorf("%d commands run, the window is %d", n, fieldLimits.QueueDepth)
	}
}

func outOfOrder(f *field) {
	before := heap()
	for range 4 {
		c := f.enemy(initiator.Options{})
		for i := range uint32(fieldLimits.QueueDepth - 1) {
			p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, make([]byte, 256<<10))
			p.SetU32(initiator.AtTTT, initiator.NoTag)
			p.SetU32(initiator.AtITT, i)
			p.SetU32(initiator.AtCmdSN, c.CmdSN+1+i)
			f.send(c, p, p)
		}
		f.answers(c)
	}
	f.expectHeap(before + 12<<20)
}

func immediateFlood(f *field) {
	f.hold(backstore.Write)
	c := f.enemy(initiator.Options{})
	c.Timeout = 300 * time.Millisecond
	for range 2000 {
		p := write(c, 0, make([]byte, 512))
		p.SetImmediate()
		f.send(c, p)
	}
	if n := f.store.Held(); n > 64 {
		f.Errorf("%d immediate commands run", n)
	}
}

// deaf is an enemy with little room for what it does not read.
func (f *field) deaf() *initiator.Conn {
	c := f.enemy(initiator.Options{})
	c.Transport().(*net.TCPConn).SetReadBuffer(4096)
	c.Timeout = 200 * time.Millisecond
	return c
}

// expectSessions waits until only n sessions are left.
func (f *field) expectSessions(n int) {
	f.Helper()
	what := fmt.Sprintf("sessions that go on, expected at most %d", n)
	eventually.Passes(f, what, func() int { return f.rig.server.Holding().Sessions }, func(found int) bool { return found <= n })
}

func nopFlood(f *field) {
	before := heap()
	c := f.deaf()
	p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, make([]byte, 256<<10))
	p.SetImmediate()
	p.SetU32(initiator.AtITT, 7)
	p.SetU32(initiator.AtTTT, initiator.NoTag)
	for range 200 {
		if c.Send(p) != nil {
			break
		}
	}
	f.expectHeap(before + 12<<20)
	f.expectSessions(1)
}

func deafReader(f *field) {
	c := f.deaf()
	for range 128 {
		f.send(c, command(c, cdbRead16(0, 512), 0xc1, 256<<10, nil))
	}
	if h := f.rig.server.Holding(); h.Buffers > 2*fieldLimits.SessionMemory/4096 {
		f.Errorf("%d buffers are held", h.Buffers)
	}
	f.stillServes()
	alive := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	alive.SetImmediate()
	alive.SetU32(initiator.AtITT, initiator.NoTag)
	alive.SetU32(initiator.AtTTT, initiator.NoTag)
	eventually.Holds(f, "a peer that never reads is thrown out", func() bool { return c.Send(alive) != nil })
}

func rejectFlood(f *field) {
	before := heap()
	f.alarm.take()
	c := f.deaf()
	p := initiator.NewPDU(0x1e, initiator.FlagFinal, nil)
	batch := bytes.Repeat(p.BHS[:], 1000)
	for range 200 {
		if c.SendBytes(batch) != nil {
			break
		}
	}
	f.expectHeap(before + 12<<20)
	if _, lines := f.alarm.take(); lines > 100 {
		f.Errorf("%d lines were logged for one session", lines)
	}
	f.expectSessions(1)
}

func slowReader(f *field) {
	c := f.deaf()
	for range 128 {
		f.send(c, command(c, cdbRead16(0, 512), 0xc1, 256<<10, nil))
	}
	b := make([]byte, 1)
	for range 30 {
		if _, err := c.Transport().Read(b); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond) // it is the slowness that is tried
	}
	f.stillServes()
}

func managementFlood(f *field) {
	f.hold(backstore.Write)
	c := f.enemy(initiator.Options{})
	c.Timeout = 300 * time.Millisecond
	first := write(c, 0, make([]byte, 512))
	f.send(c, first)
	f.alarm.take()
	before := heap()
	for range 20000 {
		if c.Send(manage(c, initiator.AbortTask, first.ITT())) != nil {
			break
		}
	}
	f.expectHeap(before + 2<<20)
	if _, lines := f.alarm.take(); lines > 100 {
		f.Errorf("%d lines were logged for one session", lines)
	}
}

// abortedTwice checks that every function is answered, and none before the task
// has really ended.
func abortedTwice(f *field) {
	f.hold(backstore.Write)
	c := f.enemy(initiator.Options{})
	victim := write(c, 0, make([]byte, 512))
	first, second := manage(c, initiator.AbortTask, victim.ITT()), manage(c, initiator.AbortTaskSet, initiator.NoTag)
	f.send(c, victim, first, second)
	if !f.answers(c) {
		f.Fatal("the session ended")
	}
	f.letGo()
	for range 2 {
		p, err := c.Receive(patience)
		if err != nil || p.Opcode() != initiator.OpTaskResponse || p.BHS[2] != 0 {
			f.Fatalf("%v, %v, expected a task management response", p, err)
		}
	}
}

// resetWar lets sessions end each other's held writes.
func resetWar(f *field) {
	f.hold(backstore.Write)
	var sides []*initiator.Conn
	for range 4 { // all before the war: it would end what a login sends, too
		sides = append(sides, f.enemy(initiator.Options{}))
	}
	var war sync.WaitGroup
	for _, c := range sides {
		c.Timeout = time.Second
		go io.Copy(io.Discard, c.Transport())
		war.Go(func() {
			for i := range 300 {
				f.send(c, write(c, 0, make([]byte, 4096)))
				f.send(c, manage(c, []byte{initiator.LogicalUnitReset, initiator.ClearTaskSet, initiator.TargetWarmReset}[i%3], initiator.NoTag))
			}
		})
	}
	war.Wait()
}

// text is a text request.
func text(c *initiator.Conn, flags byte, keys string) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpTextRequest, flags, []byte(keys))
	p.SetImmediate()
	p.SetU32(initiator.AtITT, c.NewITT())
	p.SetU32(initiator.AtTTT, initiator.NoTag)
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	return p
}

func sendTargetsFlood(f *field) {
	before := heap()
	c := f.deaf()
	for range 20000 {
		if c.Send(text(c, 0x80, "SendTargets=\x00")) != nil {
			break
		}
	}
	f.expectHeap(before + 12<<20)
}

func sendTargetsBomb(f *field) {
	c := f.enemy(initiator.Options{})
	f.send(c, text(c, 0x80, string(bytes.Repeat([]byte("SendTargets=\x00"), 1000))))
	p, err := c.Receive(0)
	if err != nil {
		f.Fatal(err)
	}
	if p.Opcode() != initiator.OpReject {
		f.Errorf("answered by opcode %#x with %d bytes, expected a Reject", p.Opcode(), len(p.Data))
	}
}

func unfinishedText(f *field) {
	c := f.enemy(initiator.Options{})
	for range 100 { // each forgets the one before
		f.send(c, text(c, 0x40, string(make([]byte, 8000))))
	}
	p := text(c, 0x40, string(make([]byte, 60000)))
	f.send(c, p)
	if f.hear(c, p.ITT()) || !f.answers(c) {
		f.Error("the session ended")
	}
}

func halfClose(f *field) {
	c := f.enemy(initiator.Options{})
	for range 8 {
		f.send(c, command(c, cdbRead16(0, 512), 0xc1, 256<<10, nil))
	}
	c.Transport().(*net.TCPConn).CloseWrite()
	f.expectEnd(c.Transport().(net.Conn))
}

func closedMidway(f *field) {
	for i, reset := range []bool{false, true, false} {
		for op, build := range map[string]func(*initiator.Conn) *initiator.PDU{
			"command": func(c *initiator.Conn) *initiator.PDU { return write(c, 0, make([]byte, 64<<10)) },
			"nop": func(c *initiator.Conn) *initiator.PDU {
				return initiator.NewPDU(initiator.OpNOPOut|0x40, 0x80, make([]byte, 100<<10))
			},
			"text":   func(c *initiator.Conn) *initiator.PDU { return text(c, 0x80, loginText) },
			"manage": func(c *initiator.Conn) *initiator.PDU { return manage(c, initiator.AbortTask, 1) },
			"data":   func(c *initiator.Conn) *initiator.PDU { return f.openWrite(c, 200<<10) },
		} {
			c := f.enemy(initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"})
			p := build(c)
			var wire bytes.Buffer
			f.send(initiator.NewEstablished(&wire, c.Params, 1, 1), p)
			n := []int{20, wire.Len() / 2, wire.Len() - 1}[i]
			if err := c.SendBytes(wire.Bytes()[:n]); err != nil {
				f.Errorf("%s: %v", op, err)
			}
			if reset {
				c.Transport().(*net.TCPConn).SetLinger(0)
				time.Sleep(5 * time.Millisecond) // or nothing of it would arrive
			}
			c.Close()
		}
	}
}

// openWrite starts a write and returns the Data-Out that its R2T asks for.
func (f *field) openWrite(c *initiator.Conn, n int) *initiator.PDU {
	f.Helper()
	t, err := c.Start(initiator.Command{CDB: cdbWrite16(0, uint32(n/512)), Out: make([]byte, n), HoldData: true})
	if err != nil {
		f.Fatal(err)
	}
	for len(t.R2Ts) == 0 {
		if _, err := c.Step(0); err != nil {
			f.Fatal(err)
		}
	}
	r2t := t.R2Ts[0]
	from, length := int(r2t.U32(initiator.AtOffset)), int(r2t.U32(initiator.AtLength))
	p := c.DataOut(t, r2t.TTT(), 0, from, t.Command.Out[from:from+length])
	p.BHS[1] |= initiator.FlagFinal
	return p
}

func afterLogout(f *field) {
	c := f.enemy(initiator.Options{})
	bye := initiator.NewPDU(initiator.OpLogout, initiator.FlagFinal, nil)
	bye.SetImmediate()
	bye.SetU32(initiator.AtITT, 0x77)
	f.send(c, bye)
	for range 100 {
		f.send(c, write(c, 0, make([]byte, 4096)))
	}
	if f.hear(c, 0x77) || f.answers(c) {
		f.Error("expected an answer to the logout and nothing after it")
	}
}

func heldWrites(f *field) {
	f.hold(backstore.Write)
	for i := range 10 {
		c := f.enemy(initiator.Options{})
		for j := range 4 {
			f.send(c, write(c, uint64(i*64+j*16), make([]byte, 8192)))
		}
		f.answers(c)
		c.Close()
	}
	if n := f.store.Held(); n != 40 {
		f.Errorf("%d writes are held, expected 40", n)
	}
}

// stashFlood sends immediate data for which no buffer is left, while the store
// does not take it at once.
func stashFlood(f *field) {
	f.hold(backstore.Write)
	c := f.enemy(initiator.Options{Keys: initiator.Keys{{Name: "FirstBurstLength", Value: "262144"}}})
	c.Transport().(*net.TCPConn).SetReadBuffer(4096)
	c.Timeout = 200 * time.Millisecond
	for range 64 {
		f.send(c, command(c, cdbRead16(0, 512), 0xc1, 256<<10, nil))
	}
	before := heap()
	for range 60 {
		p := write(c, 0, make([]byte, 256<<10))
		p.SetImmediate()
		f.send(c, p)
	}
	f.expectHeap(before + 6<<20)
}
