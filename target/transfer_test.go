package target_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/initiator"
	"lunar/target"
)

// A command longer than all the memory that its session may hold goes through
// it piece by piece.
func TestCommandLargerThanSessionMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{SessionMemory: 512 << 10}}})
	c := r.login(initiator.Options{})
	c.Timeout = 3 * time.Second
	data := pattern(3<<20, 1)
	res, err := c.Command(cdbWrite16(0, uint32(len(data)/512)), 0, data, 0)
	mustGood(t, res, err)
	res, err = c.Command(cdbRead16(0, uint32(len(data)/512)), 0, nil, len(data))
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Fatal("read back other data")
	}
}

// More large writes at once than the memory holds wait for each other, and all
// of them end.
func TestManyLargeWritesInLittleMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Buffers: 2 << 20}})
	c := r.login(initiator.Options{})
	c.Timeout = 3 * time.Second
	data := pattern(1<<20, 3)
	var tasks []*initiator.Task
	for i := range 12 {
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbWrite16(uint64(i)*2048, 2048), Out: data}))
	}
	full := 0
	for _, task := range tasks {
		res, err := c.Wait(task)
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == initiator.StatusTaskSetFull {
			full++
			continue
		}
		mustGood(t, res, err)
	}
	if full == len(tasks) {
		t.Fatal("no write went through")
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

var errMedium = errors.New("medium error of the test")

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
	solicited := initiator.Keys{{Name: "ImmediateData", Value: "No"}, {Name: "InitialR2T", Value: "Yes"}}
	a := r.login(initiator.Options{ISID: [6]byte{1}, Keys: solicited})
	b := r.login(initiator.Options{ISID: [6]byte{2}, Keys: solicited})
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
	eventually(t, "write held", func() bool { return store.Held() == 1 })
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
	eventually(t, "buffer taken", func() bool { return r.server.Holding().Buffers == 1 })
	c.Close()
	eventually(t, "buffer returned", func() bool { return r.server.Holding().Buffers == 0 })
}
