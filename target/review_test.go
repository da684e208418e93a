package target_test

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// heldReads is a rig whose reads end only when the test lets them, so that
// they keep their buffers.
func heldReads(t *testing.T, config target.Config) (*rig, *errstore.Store) {
	t.Helper()
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
	return newRig(t, rigOptions{store: store, config: config}), store
}

// A write that is turned away while a thread's memory is all taken leaves the
// thread as it was: when the memory comes back, everybody gets it.
func TestMemoryComesBackAfterAWriteWasTurnedAway(t *testing.T) {
	r, store := heldReads(t, target.Config{Threads: 1, Buffers: 1 << 20})
	var readers []*initiator.Conn
	var reads []*initiator.Task
	for i := range 2 {
		c := r.login(initiator.Options{ISID: [6]byte{1, byte(i)}})
		readers = append(readers, c)
		reads = append(reads, start(t, c, initiator.Command{CDB: cdbRead16(0, 1024), InLen: 512 << 10}))
	}
	eventually(t, "reads hold all memory", func() bool { return store.Held() == 4 })
	w := r.login(initiator.Options{ISID: [6]byte{2}})
	res, err := w.Command(cdbWrite16(0, 1024), 0, pattern(512<<10, 1), 0)
	if err != nil || res.Status != 0x08 {
		t.Fatalf("status %#x, %v, expected BUSY", res.Status, err)
	}
	store.SetRules()
	store.Release(-1)
	for i, c := range readers {
		res, err := c.Wait(reads[i])
		mustGood(t, res, err)
	}
	res, err = w.Command(cdbRead16(0, 8), 0, nil, 4096)
	mustGood(t, res, err)
	res, err = w.Command(cdbWrite16(0, 1024), 0, pattern(512<<10, 1), 0)
	mustGood(t, res, err)
}

// Immediate data of a command that gets memory for its first segment only is
// kept for the others.
func TestImmediateDataIsKeptForEverySegment(t *testing.T) {
	r, store := heldReads(t, target.Config{Threads: 1, Limits: target.Limits{SessionMemory: 1 << 20}})
	c := r.login(initiator.Options{Keys: initiator.Keys{
		{Name: "FirstBurstLength", Value: "262144"}, {Name: "MaxBurstLength", Value: "262144"}}})
	start(t, c, initiator.Command{CDB: cdbRead16(4096, 2048), InLen: 1 << 20})
	eventually(t, "a read holds all memory", func() bool { return store.Held() == 4 })

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
	eventually(t, "verification is held", func() bool { return store.Held() == 4 })
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

// The status of a long read opens the command window again, however early its
// PDU leaves.
func TestStatusOfALongReadOpensTheWindow(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{QueueDepth: 1}}})
	c := r.login(initiator.Options{})
	res, err := c.Command(cdbRead16(0, 1024), 0, nil, 512<<10)
	mustGood(t, res, err)
	if !c.WindowOpen() {
		t.Fatalf("MaxCmdSN %d with the status, expected no less than CmdSN %d", c.MaxCmdSN, c.CmdSN)
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

// A connection that replaces its session's keeps what the session has agreed.
func TestConnectionReinstatementKeepsTheSession(t *testing.T) {
	r := newRig(t, rigOptions{})
	old := r.login(initiator.Options{})
	c := r.login(initiator.Options{TSIH: old.TSIH, Bare: true})
	p := command(c, cdbWrite16(0, 8), 0x20, 4096, nil)
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(dataOut(p.ITT(), 0, 0, 4096, initiator.FlagFinal)); err != nil {
		t.Fatal(err)
	}
	if _, status := answers(t, c, p.ITT()); status != 0 {
		t.Fatalf("unsolicited data, which the session allows: status %#x", status)
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

// A target reset reaches the units that its sender sees, and whoever loses a
// command by it is told so.
func TestTargetResetTellsWhomeverItHits(t *testing.T) {
	store := func() *errstore.Store {
		ram, err := backstore.NewRAM(16<<20, 512)
		if err != nil {
			t.Fatal(err)
		}
		return errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	}()
	r := newRig(t, rigOptions{lus: 1, store: store, rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		other, err := backstore.NewRAM(16<<20, 512)
		if err != nil {
			t.Fatal(err)
		}
		mine, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: "mine", Store: other, BlockSize: 512})
		if err != nil {
			t.Fatal(err)
		}
		return []target.AccessRule{
			{Initiators: []string{"iqn.2026-01.lunar:resetter"}, Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: mine}}},
			{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: lus[0]}}},
		}
	}})
	victim := r.login(initiator.Options{})
	resetter := r.login(initiator.Options{Initiator: "iqn.2026-01.lunar:resetter"})
	task := heldWrite(t, victim, store, 0)
	if code, err := resetter.TaskManagement(initiator.TaskRequest{Function: initiator.TargetWarmReset}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	store.Release(-1)
	res, err := victim.Wait(task)
	mustGood(t, res, err)
}
