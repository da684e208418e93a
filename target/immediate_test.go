package target_test

import (
	"bytes"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// Immediate data of a command that gets memory for its first segment only is
// kept for the others.
func TestImmediateDataIsKeptForEverySegment(t *testing.T) {
	r, store := delayedReads(t, target.Config{Threads: 1, Limits: target.Limits{SessionMemory: 1 << 20}})
	c := r.login(initiator.Options{Keys: initiator.Keys{
		{Name: "FirstBurstLength", Value: "262144"}, {Name: "MaxBurstLength", Value: "262144"}}})
	start(t, c, initiator.Command{CDB: cdbRead16(4096, 2048), InLen: 1 << 20})
	eventually.Holds(t, "a read holds all memory", func() bool { return store.Held() == 4 })

	data := append(pattern(128<<10, 7), pattern(64<<10, 8)...)
	cdb := cdbWrite16(0, uint32(len(data)/512))
	cdb[0] = 0x8e // WRITE AND VERIFY(16)
	p := command(c, cdb, 0xa0, uint32(len(data)), nil)
	p.BHS[5], p.BHS[6], p.BHS[7] = byte(len(data)>>16), byte(len(data)>>8), byte(len(data))
	if err := c.SendBytes(append(p.BHS[:], data[:100<<10]...)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the target finds no memory for it
	store.Release(1)
	for n := 0; n < 256<<10; {
		in, err := c.Step(0)
		if err != nil {
			t.Fatal(err)
		}
		n += len(in.Data)
	}
	if err := c.SendBytes(data[100<<10:]); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "verification is held", func() bool { return store.Held() == 4 })
	store.SetRules()
	store.Release(-1)
	for {
		in, err := c.Receive(patience)
		if err != nil {
			t.Fatal(err)
		}
		if in.BHS[0]&0x3f == 0x21 && bytes.Equal(in.BHS[16:20], p.BHS[16:20]) {
			if in.BHS[3] != 0 {
				t.Fatalf("status %#x", in.BHS[3])
			}
			break
		}
	}
	reader := r.login(initiator.Options{ISID: [6]byte{3}})
	res, err := reader.Command(cdbRead16(0, uint32(len(data)/512)), 0, nil, len(data))
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Fatal("read back other data")
	}
}

// Immediate data with a wrong digest is rejected (RFC 7143 section 7.7), and
// its command, which must not vanish from the command order, fails.
func TestImmediateDataWithAWrongDigestIsRejected(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(digests)
	p := write(c, 0, pattern(512, 1))
	p.BadDataDigest = true
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	opcodes, status := answers(t, c, p.ITT())
	if !bytes.Equal(opcodes, []byte{initiator.OpReject, initiator.OpSCSIResponse}) || status != 2 {
		t.Fatalf("opcodes %#x, status %#x, expected a Reject and CHECK CONDITION", opcodes, status)
	}
}

// answers receives until the command has its status, and returns the opcodes
// that came for its tag.
func answers(t *testing.T, c *initiator.Conn, itt uint32) (opcodes []byte, status byte) {
	t.Helper()
	for {
		p, err := c.Receive(patience)
		if err != nil {
			t.Fatal(err)
		}
		opcodes = append(opcodes, p.Opcode())
		if p.Opcode() == initiator.OpSCSIResponse && p.ITT() == itt {
			return opcodes, p.BHS[3]
		}
	}
}
