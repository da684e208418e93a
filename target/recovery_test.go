package target_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// recoveringRig is a server at ErrorRecoveryLevel 1 with a session at that level.
func recoveringRig(t *testing.T, keys ...initiator.Key) (*rig, *initiator.Conn) {
	o := rigOptions{}
	o.config.Limits.Recovery = 1
	r := newRig(t, o)
	keys = append(keys, initiator.Key{Name: "ErrorRecoveryLevel", Value: "2"})
	c := r.login(initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C", Keys: keys})
	if got := c.Params.ErrorRecoveryLevel; got != 1 {
		t.Fatalf("ErrorRecoveryLevel %d, expected 1", got)
	}
	return r, c
}

// settle waits for a task and asks for what may be missing after each silence. What is
// asked for too early comes twice, so the next silence has to be longer.
func settle(t *testing.T, c *initiator.Conn, task *initiator.Task) *initiator.Result {
	t.Helper()
	silence := 30 * time.Millisecond
	for late := time.Now().Add(patience); time.Now().Before(late); silence = min(2*silence, time.Second) {
		for !task.Done {
			_, err := c.Step(silence)
			if errors.Is(err, initiator.ErrTimeout) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if task.Done {
			return mustGood(t, &task.Result, nil)
		}
		if err := c.Prod(); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("a task has not ended")
	return nil
}

// Whatever is lost on the way, in both directions, comes again, and the data are
// right.
func TestLossesAreRecovered(t *testing.T) {
	for _, keys := range [][]initiator.Key{
		nil,
		{{Name: "InitialR2T", Value: "Yes"}, {Name: "ImmediateData", Value: "No"}, {Name: "MaxOutstandingR2T", Value: "4"}},
		{{Name: "MaxRecvDataSegmentLength", Value: "4096"}, {Name: "MaxBurstLength", Value: "16384"}, {Name: "FirstBurstLength", Value: "8192"}},
	} {
		_, c := recoveringRig(t, keys...)
		random := rand.New(rand.NewPCG(5, 6))
		c.Lose = func(p *initiator.PDU) bool { return random.IntN(12) == 0 }
		c.Corrupt = func(p *initiator.PDU) {
			p.BadDataDigest = len(p.Data) > 0 && random.IntN(12) == 0
		}
		for i := range 20 {
			size := 512 * (1 + random.IntN(600))
			data := pattern(size, byte(i))
			settle(t, c, start(t, c, initiator.Command{CDB: cdbWrite16(8, uint32(size/512)), Out: data, Segment: 4096}))
			got := settle(t, c, start(t, c, initiator.Command{CDB: cdbRead16(8, uint32(size/512)), InLen: size})).In
			if !bytes.Equal(got, data) {
				t.Fatal("read back other data")
			}
		}
		if c.Lost == 0 || len(c.Rejects) == 0 {
			t.Fatalf("%d PDUs lost, %d rejected: the test has tested nothing", c.Lost, len(c.Rejects))
		}
		c.Lose, c.Corrupt = nil, nil
	}
}

// R-Data SNACK: the data come again in PDUs as short as the initiator takes them now,
// and the status tells so.
func TestResegmentation(t *testing.T) {
	_, c := recoveringRig(t)
	const size = 64 << 10
	data := pattern(size, 7)
	mustDo(t, c, initiator.Command{CDB: cdbWrite16(0, size/512), Out: data}) // nothing is lost: who asks too early gets its status twice
	task := start(t, c, initiator.Command{CDB: cdbRead16(0, size/512), InLen: size})
	receive := func(opcode byte) *initiator.PDU {
		t.Helper()
		p, err := c.Receive(0)
		if err != nil || p.Opcode() != opcode {
			t.Fatalf("opcode %#x, %v, expected %#x", p.Opcode(), err, opcode)
		}
		return p
	}
	receive(initiator.OpDataIn)
	status := receive(initiator.OpSCSIResponse).StatSN()
	text := initiator.NewPDU(initiator.OpTextRequest, initiator.FlagFinal, initiator.Keys{{Name: "MaxRecvDataSegmentLength", Value: "4096"}}.Text())
	text.SetImmediate()
	text.SetU32(initiator.AtITT, c.NewITT())
	text.SetU32(initiator.AtTTT, initiator.NoTag)
	text.SetU32(initiator.AtCmdSN, c.CmdSN)
	text.SetU32(initiator.AtExpStatSN, status)
	if err := c.Send(text); err != nil {
		t.Fatal(err)
	}
	receive(initiator.OpTextResponse)
	c.Params.MaxRecvDataSegmentLength = 4096
	c.ExpStatSN = status
	if err := c.SNACK(initiator.SNACKRData, task.ITT, 0x77, 0, 0); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for sn := range uint32(size / 4096) {
		p := receive(initiator.OpDataIn)
		if p.U32(initiator.AtDataSN) != sn || int(p.U32(initiator.AtOffset)) != len(got) {
			t.Fatalf("DataSN %d at %d, expected %d at %d", p.U32(initiator.AtDataSN), p.U32(initiator.AtOffset), sn, len(got))
		}
		got = append(got, p.Data...)
	}
	p := receive(initiator.OpSCSIResponse)
	if !bytes.Equal(got, data) || p.TTT() != 0x77 || p.StatSN() != status || p.U32(initiator.AtDataSN) != size/4096 {
		t.Fatalf("data equal: %t; SNACK Tag %#x, StatSN %d, ExpDataSN %d", bytes.Equal(got, data), p.TTT(), p.StatSN(), p.U32(initiator.AtDataSN))
	}
	c.ExpStatSN++ // of the text response
	if err := c.Ping(nil); err != nil {
		t.Fatal(err)
	}
}

// What is acknowledged, or was never sent, is rejected.
func TestSNACKReject(t *testing.T) {
	_, c := recoveringRig(t)
	settle(t, c, start(t, c, initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096}))
	if err := c.Ping(nil); err != nil { // acknowledges it
		t.Fatal(err)
	}
	for _, kind := range []byte{initiator.SNACKData, initiator.SNACKStatus, initiator.SNACKRData} {
		if err := c.SNACK(kind, c.NewITT(), initiator.NoTag, c.ExpStatSN-2, 1); err != nil {
			t.Fatal(err)
		}
		for n := len(c.Rejects); len(c.Rejects) == n; {
			if _, err := c.Step(0); err != nil {
				t.Fatal(err)
			}
		}
		if reason := c.Rejects[len(c.Rejects)-1].BHS[2]; reason != 3 {
			t.Errorf("SNACK of type %d: reason %#x, expected SNACK Reject", kind, reason)
		}
	}
}

// SNACKs of any content do no harm.
func TestHostileSNACKs(t *testing.T) {
	r, c := recoveringRig(t)
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		if random.IntN(3) == 0 {
			start(t, c, initiator.Command{CDB: cdbRead16(0, 64), InLen: 32 << 10, Immediate: true})
		}
		pick := func() uint32 {
			return [...]uint32{0, 1, 2, c.ExpStatSN, c.ExpStatSN - 1, initiator.NoTag, random.Uint32()}[random.IntN(7)]
		}
		if err := c.SNACK(byte(random.IntN(16)), pick(), pick(), pick(), pick()); err != nil {
			break // more than it takes is answered by an end, too
		}
	}
	c.Close()
	eventually.Holds(t, "the session's end", func() bool { return r.server.Holding().Sessions == 0 && r.server.Holding().Buffers == 0 })
	c = r.login(initiator.Options{})
	res, err := c.Command(make([]byte, 6), 0, nil, 0)
	mustGood(t, res, err)
}
