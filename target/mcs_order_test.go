package target_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// Commands that are numbered in one order and come in another, on several
// connections, are executed as they are numbered.
func TestCommandOrderOverConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(4)
	random := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, 16*512)
	mustDo(t, conns[0], initiator.Command{CDB: cdbWrite16(0, 16), Out: model})
	for round := range 50 {
		first, n := conns[0].CmdSN, 1+random.IntN(40)
		type step struct {
			cmd  initiator.Command
			want []byte
			task *initiator.Task
			conn *initiator.Conn
		}
		steps := make([]step, n)
		for i := range steps {
			block, count := random.IntN(12), 1+random.IntN(4)
			if random.IntN(2) == 0 {
				out := pattern(count*512, byte(round+i*17))
				steps[i].cmd = initiator.Command{CDB: cdbWrite16(uint64(block), uint32(count)), Out: out}
				copy(model[block*512:], out)
			} else {
				steps[i].cmd = initiator.Command{CDB: cdbRead16(uint64(block), uint32(count)), InLen: count * 512}
				steps[i].want = bytes.Clone(model[block*512:][:count*512])
			}
		}
		for _, i := range random.Perm(n) {
			s := &steps[i]
			s.conn = conns[random.IntN(len(conns))]
			s.conn.CmdSN = first + uint32(i)
			s.task = start(t, s.conn, s.cmd)
		}
		conns[0].CmdSN = first + uint32(n)
		for i := range steps {
			s := &steps[i]
			res, err := s.conn.Wait(s.task)
			if got := mustGood(t, res, err).In; s.want != nil && !bytes.Equal(got, s.want) {
				t.Fatalf("round %d, command %d of %d: read something else than was written before it", round, i, n)
			}
		}
	}
}

// Data that come unasked behind a command that waits for others wait with it.
func TestUnsolicitedDataOverConnections(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2, initiator.Key{Name: "ImmediateData", Value: "No"})
	a, b := conns[0], conns[1]
	missing := a.CmdSN
	a.CmdSN++
	data := pattern(48<<10, 5)
	early := start(t, a, initiator.Command{CDB: cdbWrite16(0, 96), Out: data, Segment: 9000})
	if err := a.Ping(nil); err != nil {
		t.Fatal(err)
	}
	sendMissing(t, b, missing, a.CmdSN)
	res, err := a.Wait(early)
	mustGood(t, res, err)
	if got := mustDo(t, b, initiator.Command{CDB: cdbRead16(0, 96), InLen: len(data)}).In; !bytes.Equal(got, data) {
		t.Fatal("read back other data")
	}
}

// A command that has waited for another one takes none of the memory that its
// connection has named for the data of the next one.
func TestHeldCommandBesideDataUnderWay(t *testing.T) {
	r := sharedRig(t, rigOptions{})
	conns := r.shared(2)
	a, b := conns[0], conns[1]
	missing := a.CmdSN
	a.CmdSN++
	first, second := pattern(32<<10, 1), pattern(32<<10, 2)
	early := command(a, cdbWrite16(0, 64), 0x20, 32<<10, first[:16<<10])
	rest := dataOut(early.ITT(), 0, 16<<10, 0, 0x80)
	rest.Data = first[16<<10:]
	late := command(a, cdbWrite16(64, 64), 0xa0, 32<<10, second)
	for _, p := range []*initiator.PDU{early, rest} {
		if err := a.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	var whole bytes.Buffer
	if err := initiator.NewEstablished(&whole, initiator.Params{}, 1, 1).Send(late); err != nil {
		t.Fatal(err)
	}
	if err := a.SendBytes(whole.Next(20 << 10)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "that its data are placed", func() bool { return r.server.Holding().Buffers > 0 })
	next := a.CmdSN
	b.CmdSN = missing
	start(t, b, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096})
	b.CmdSN = next
	receive := func(c *initiator.Conn, opcode byte) {
		t.Helper()
		if p, err := c.Receive(0); err != nil || p.Opcode() != opcode {
			t.Fatalf("opcode %#x, %v, expected %#x", p.Opcode(), err, opcode)
		}
	}
	receive(a, initiator.OpSCSIResponse)
	if err := a.SendBytes(whole.Bytes()); err != nil {
		t.Fatal(err)
	}
	receive(a, initiator.OpSCSIResponse)
	receive(b, initiator.OpDataIn)
	if got := mustDo(t, b, initiator.Command{CDB: cdbRead16(0, 128), InLen: 64 << 10}).In; !bytes.Equal(got, append(first, second...)) {
		t.Fatal("read back other data")
	}
}
