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
	"lunar/target/targettest"
)

var errMedium = errors.New("medium error of the test")

// A command longer than all the memory that its session may hold goes through
// it piece by piece.
func TestCommandLargerThanSessionMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{SessionMemory: 512 << 10}}})
	c := r.login(initiator.Options{})
	c.Timeout = patience
	data := pattern(3<<20, 1)
	res, err := c.Command(cdbWrite16(0, uint32(len(data)/512)), 0, data, 0)
	mustGood(t, res, err)
	res, err = c.Command(cdbRead16(0, uint32(len(data)/512)), 0, nil, len(data))
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Fatal("read back other data")
	}
}

// More large commands at once than the memory holds wait for each other, and
// all of them end.
func TestManyLargeCommandsInLittleMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Buffers: 2 << 20}})
	c := r.login(initiator.Options{Keys: solicitedOnly})
	data := pattern(1<<20, 3)
	var writes, reads []*initiator.Task
	for i := range 12 {
		writes = append(writes, start(t, c, initiator.Command{CDB: cdbWrite16(uint64(i)*2048, 2048), Out: data}))
	}
	for _, task := range writes {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	for i := range 12 {
		reads = append(reads, start(t, c, initiator.Command{CDB: cdbRead16(uint64(i)*2048, 2048), InLen: len(data)}))
	}
	for _, task := range reads {
		res, err := c.Wait(task)
		if !bytes.Equal(mustGood(t, res, err).In, data) {
			t.Fatal("read back other data")
		}
	}
}

// solicitedOnly lets no data come unasked, so that no write is turned away for
// lack of memory.
var solicitedOnly = initiator.Keys{{Name: "ImmediateData", Value: "No"}, {Name: "InitialR2T", Value: "Yes"}}

// A session that reads nothing of what it asked for holds its own budget, not
// the memory of the others.
func TestStalledReaderHarmsNobody(t *testing.T) {
	store, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, store, 512, target.Config{Threads: 1, Buffers: 4 << 20})
	stalled := s.connect(t, overMemory(targettest.Wire{Window: 64 << 10}), initiator.Options{ISID: [6]byte{1}})
	other := s.connect(t, overTCP, initiator.Options{ISID: [6]byte{2}, Keys: solicitedOnly})
	for _, c := range []*initiator.Conn{stalled, other} {
		if err := c.Ready(0); err != nil {
			t.Fatal(err)
		}
	}
	var tasks []*initiator.Task
	for range 32 {
		tasks = append(tasks, start(t, stalled, initiator.Command{CDB: cdbRead16(0, 2048), InLen: 1 << 20}))
	}
	for i := range 4 {
		data := pattern(1<<20, byte(i))
		res, err := other.Command(cdbWrite16(4096, 2048), 0, data, 0)
		mustGood(t, res, err)
		res, err = other.Command(cdbRead16(4096, 2048), 0, nil, len(data))
		if !bytes.Equal(mustGood(t, res, err).In, data) {
			t.Fatal("read back other data")
		}
	}
	for _, task := range tasks {
		res, err := stalled.Wait(task)
		mustGood(t, res, err)
	}
}

// A read that fails half way has sent some of its data.
func TestReadFailsHalfWay(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Off: 512 << 10, Len: 512, Err: errMedium})
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{Keys: initiator.Keys{{Name: "MaxBurstLength", Value: "1048576"}}})
	for _, n := range []int{513 << 10, 1 << 20, 3 << 20} {
		res, err := c.Command(cdbRead16(0, uint32(n/512)), 0, nil, n)
		if err != nil {
			t.Fatal(err)
		}
		if key, asc, _ := res.SenseKey(); key != 3 || asc != 0x11 {
			t.Fatalf("%d bytes: sense %x/%02x, expected 3/11", n, key, asc)
		}
	}
}

// halfSent starts a write whose first Data-Out PDU arrives only half, and
// returns the other half.
func halfSent(t *testing.T, c *initiator.Conn, out []byte) (rest []byte) {
	t.Helper()
	task := start(t, c, initiator.Command{CDB: cdbWrite16(0, uint32(len(out)/512)), Out: out, HoldData: true})
	for len(task.R2Ts) == 0 {
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
	}
	p := c.DataOut(task, task.R2Ts[0].TTT(), 0, 0, out)
	p.BHS[1] |= initiator.FlagFinal
	p.BHS[5], p.BHS[6], p.BHS[7] = byte(len(out)>>16), byte(len(out)>>8), byte(len(out))
	if err := c.SendBytes(append(p.BHS[:], out[:len(out)/2]...)); err != nil {
		t.Fatal(err)
	}
	return out[len(out)/2:]
}

// What still arrives for a command that another initiator's reset has ended
// goes nowhere: its memory may be somebody else's already.
func TestAbortWhileDataArrives(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	r := newRig(t, rigOptions{store: store, config: target.Config{Threads: 1}})
	a := r.login(initiator.Options{ISID: [6]byte{1}, Keys: solicitedOnly})
	b := r.login(initiator.Options{ISID: [6]byte{2}, Keys: solicitedOnly})
	rest := halfSent(t, a, bytes.Repeat([]byte{0xaa}, 256<<10))
	if code, err := b.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	if err := b.Ready(0); err != nil {
		t.Fatal(err)
	}
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	want := pattern(256<<10, 7)
	task := start(t, b, initiator.Command{CDB: cdbWrite16(1024, 512), Out: want})
	if _, err := b.Step(0); err != nil { // its R2T
		t.Fatal(err)
	}
	eventually.Holds(t, "write held", func() bool { return store.Held() == 1 })
	if err := a.SendBytes(rest); err != nil {
		t.Fatal(err)
	}
	if err := a.Ping(nil); err != nil {
		t.Fatal(err)
	}
	store.SetRules()
	store.Release(-1)
	res, err := b.Wait(task)
	mustGood(t, res, err)
	res, err = b.Command(cdbRead16(1024, 512), 0, nil, len(want))
	if !bytes.Equal(mustGood(t, res, err).In, want) {
		t.Fatal("the write of one initiator holds data of another")
	}
}

// A connection that breaks in the middle of a command's immediate data leaves
// no buffer behind.
func TestCutInImmediateData(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	p := initiator.NewPDU(initiator.OpSCSICommand, initiator.FlagFinal|initiator.FlagWrite|initiator.AttrSimple, nil)
	p.KeepLengths = true
	p.BHS[5] = 1 // 64 KiB
	p.SetU32(initiator.AtITT, 77)
	p.SetU32(initiator.AtTTT, 64<<10)
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	copy(p.BHS[initiator.AtCDB:], cdbWrite16(0, 128))
	if err := c.SendBytes(append(p.BHS[:], make([]byte, 32<<10)...)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "buffer taken", func() bool { return r.server.Holding().Buffers == 1 })
	c.Close()
	eventually.Holds(t, "buffer returned", func() bool { return r.server.Holding().Buffers == 0 })
}

// failures are what stores end operations with, and the sense data for it.
var failures = []struct {
	name           string
	kind           backstore.Kind
	err            error
	key, asc, ascq byte
}{
	{"read error", backstore.Read, errMedium, 3, 0x11, 0},
	{"write error", backstore.Write, errMedium, 3, 0x0c, 0},
	{"no space", backstore.Write, backstore.ErrNoSpace, 7, 0x27, 7},
	{"read of what is gone", backstore.Read, backstore.ErrGone, 2, 0x04, 3},
	{"write of what is gone", backstore.Write, backstore.ErrGone, 2, 0x04, 3},
}

// A store's errors become sense data of the commands that they concern. Data
// that is on its way then is dropped, and other commands and sessions go on.
func TestStoreErrors(t *testing.T) {
	for _, async := range []bool{false, true} {
		for _, f := range failures {
			t.Run(f.name, func(t *testing.T) {
				ram, err := backstore.NewRAM(16<<20, 512)
				if err != nil {
					t.Fatal(err)
				}
				store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{f.kind}, Off: 512 << 10, Len: 512, Err: f.err, Async: async})
				s := serve(t, store, 512, target.Config{Buffers: 4 << 20})
				a := s.connect(t, overTCP, initiator.Options{ISID: [6]byte{1}})
				b := s.connect(t, overTCP, initiator.Options{ISID: [6]byte{2}})
				for _, c := range []*initiator.Conn{a, b} {
					if err := c.Ready(0); err != nil {
						t.Fatal(err)
					}
				}
				data := pattern(1<<20, 1)
				failing := initiator.Command{CDB: cdbRead16(0, 2048), InLen: 1 << 20}
				if f.kind == backstore.Write {
					failing = initiator.Command{CDB: cdbWrite16(0, 2048), Out: data}
				}
				bad := start(t, a, failing)
				good := start(t, a, initiator.Command{CDB: cdbWrite16(2048, 2048), Out: data})
				res, err := b.Command(cdbWrite16(4096, 2048), 0, data, 0)
				mustGood(t, res, err)
				res, err = a.Wait(good)
				mustGood(t, res, err)
				if res, err = a.Wait(bad); err != nil {
					t.Fatal(err)
				}
				if key, asc, ascq := res.SenseKey(); key != f.key || asc != f.asc || ascq != f.ascq {
					t.Errorf("sense %x/%02x/%02x, expected %x/%02x/%02x", key, asc, ascq, f.key, f.asc, f.ascq)
				}
				for _, lba := range []uint64{2048, 4096} {
					res, err = b.Command(cdbRead16(lba, 2048), 0, nil, len(data))
					if !bytes.Equal(mustGood(t, res, err).In, data) {
						t.Errorf("lba %d: other data", lba)
					}
				}
			})
		}
	}
}

// Data whose digest is wrong fails its command; the session goes on.
func TestDataDigestError(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{DataDigest: "CRC32C", HeaderDigest: "CRC32C", Keys: solicitedOnly})
	for _, n := range []int{4096, 128 << 10} {
		out := pattern(n, 1)
		task := start(t, c, initiator.Command{CDB: cdbWrite16(0, uint32(n/512)), Out: out, HoldData: true})
		for len(task.R2Ts) == 0 {
			if _, err := c.Step(0); err != nil {
				t.Fatal(err)
			}
		}
		p := c.DataOut(task, task.R2Ts[0].TTT(), 0, 0, out)
		p.BHS[1] |= initiator.FlagFinal
		p.BadDataDigest = true
		rejects := len(c.Rejects)
		if err := c.Send(p); err != nil {
			t.Fatal(err)
		}
		res, err := c.Wait(task)
		if err != nil {
			t.Fatal(err)
		}
		if key, asc, ascq := res.SenseKey(); key != 0xb || asc != 0x47 || ascq != 5 {
			t.Errorf("%d bytes: sense %x/%02x/%02x, expected b/47/05", n, key, asc, ascq)
		}
		if err := c.Ping(nil); err != nil {
			t.Fatal(err)
		}
		if len(c.Rejects) != rejects+1 || c.Rejects[rejects].BHS[2] != 2 {
			t.Errorf("%d bytes: %d rejects, expected one more for the data digest", n, len(c.Rejects))
		}
	}
}

// A header whose digest is wrong cannot be trusted in anything.
func TestHeaderDigestError(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{HeaderDigest: "CRC32C"})
	p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	p.BadHeaderDigest = true
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(0); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected the target to close", err)
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
