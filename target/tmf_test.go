package target_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// holdingRig is a rig whose writes to the first MiB end only when the test
// lets them.
func holdingRig(t *testing.T) (*rig, *errstore.Store) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	return newRig(t, rigOptions{store: store}), store
}

func start(t *testing.T, c *initiator.Conn, cmd initiator.Command) *initiator.Task {
	t.Helper()
	task, err := c.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// patience is how long a test waits for what must happen.
const patience = eventually.Patience

// heldWrite starts a write and waits until its store operation is held.
func heldWrite(t *testing.T, c *initiator.Conn, store *errstore.Store, lba uint64) *initiator.Task {
	t.Helper()
	before := store.Held()
	task := start(t, c, initiator.Command{CDB: cdbWrite16(lba, 8), Out: pattern(4096, 1)})
	eventually.Holds(t, "write held", func() bool { return store.Held() > before })
	return task
}

// respondsOnlyAfter checks that a task management function is answered when,
// and not before, the held operations have ended.
func respondsOnlyAfter(t *testing.T, c *initiator.Conn, r initiator.TaskRequest, release func()) byte {
	t.Helper()
	type answer struct {
		code byte
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		code, err := c.TaskManagement(r)
		got <- answer{code, err}
	}()
	select {
	case a := <-got:
		t.Fatalf("answered %d, %v while the store still works for the task", a.code, a.err)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.code
}

func TestAbortTaskWaitsForTheStore(t *testing.T) {
	r, store := holdingRig(t)
	c := r.login(initiator.Options{})
	task := heldWrite(t, c, store, 0)
	code := respondsOnlyAfter(t, c, initiator.TaskRequest{Function: initiator.AbortTask, Referenced: task}, func() { store.Release(-1) })
	if code != 0 {
		t.Fatalf("response %d, expected function complete", code)
	}
	c.Forget(task)
	store.SetRules()
	res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096) // and no status of the aborted task may come
	mustGood(t, res, err)
}

func TestAbortTaskInDataTransfer(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	task := start(t, c, initiator.Command{CDB: cdbWrite16(0, 2048), Out: pattern(1<<20, 2), HoldData: true})
	for len(task.R2Ts) == 0 {
		if _, err := c.Step(patience); err != nil {
			t.Fatal(err)
		}
	}
	code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: task})
	if err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	// Data that was on its way meets no task and is dropped.
	if err := c.Send(c.DataOut(task, task.R2Ts[0].TTT(), 0, 64<<10, pattern(8192, 3))); err != nil {
		t.Fatal(err)
	}
	c.Forget(task)
	res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096)
	mustGood(t, res, err)
}

func TestAbortTaskUnknown(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: &initiator.Task{ITT: 0x12345678}})
	if err != nil || code != 1 {
		t.Fatalf("response %d, %v, expected task does not exist", code, err)
	}
}

func TestAbortTaskSetIsOfOneSession(t *testing.T) {
	r, store := holdingRig(t)
	a := r.login(initiator.Options{ISID: [6]byte{1}})
	b := r.login(initiator.Options{ISID: [6]byte{2}})
	ta, tb := heldWrite(t, a, store, 0), heldWrite(t, b, store, 64)
	code := respondsOnlyAfter(t, a, initiator.TaskRequest{Function: initiator.AbortTaskSet}, func() { store.Release(-1) })
	if code != 0 {
		t.Fatalf("response %d", code)
	}
	a.Forget(ta)
	if res, err := b.Wait(tb); err != nil || res.Status != 0 {
		t.Fatalf("the other session's write: %v, %v", res, err)
	}
}

// sets are the functions that reach the tasks of all sessions, and what the
// other initiators are told.
var sets = []struct {
	name     string
	function byte
	asc      byte
	ascq     byte
	self     bool // the asking session hears it too
}{
	{"ClearTaskSet", initiator.ClearTaskSet, 0x2f, 0x00, false},
	{"LogicalUnitReset", initiator.LogicalUnitReset, 0x29, 0x03, true},
	{"TargetWarmReset", initiator.TargetWarmReset, 0x29, 0x03, true},
}

func TestFunctionsReachAllSessions(t *testing.T) {
	for _, f := range sets {
		t.Run(f.name, func(t *testing.T) {
			r, store := holdingRig(t)
			a := r.login(initiator.Options{ISID: [6]byte{1}})
			b := r.login(initiator.Options{ISID: [6]byte{2}})
			ta, tb := heldWrite(t, a, store, 0), heldWrite(t, b, store, 64)
			if code := respondsOnlyAfter(t, a, initiator.TaskRequest{Function: f.function}, func() { store.Release(-1) }); code != 0 {
				t.Fatalf("response %d", code)
			}
			a.Forget(ta)
			b.Forget(tb)
			expectAttention(t, b, f.asc, f.ascq)
			if f.self {
				expectAttention(t, a, f.asc, f.ascq)
			}
			for _, c := range []*initiator.Conn{a, b} {
				res, err := c.Command(make([]byte, 6), 0, nil, 0)
				mustGood(t, res, err)
			}
		})
	}
}

func expectAttention(t *testing.T, c *initiator.Conn, asc, ascq byte) {
	t.Helper()
	res, err := c.Command(make([]byte, 6), 0, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if key, a, q := res.SenseKey(); key != 6 || a != asc || q != ascq {
		t.Fatalf("sense %x/%02x/%02x, expected 6/%02x/%02x", key, a, q, asc, ascq)
	}
}

func TestTargetColdResetEndsSessions(t *testing.T) {
	r := newRig(t, rigOptions{})
	a := r.login(initiator.Options{ISID: [6]byte{1}})
	b := r.login(initiator.Options{ISID: [6]byte{2}})
	if code, err := a.TaskManagement(initiator.TaskRequest{Function: initiator.TargetColdReset}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	if _, err := b.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected that the other session ends", err)
	}
}

func TestFunctionsWithoutTasks(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	for _, f := range []struct {
		name           string
		function, want byte
		lun            uint64
	}{
		{"clear ACA", initiator.ClearACA, 0, 0},
		{"task reassign", initiator.TaskReassign, 4, 0},
		{"abort task set of no LUN", initiator.AbortTaskSet, 2, 5},
		{"reset of no LUN", initiator.LogicalUnitReset, 2, 5},
		{"unknown", 77, 5, 0},
	} {
		code, err := c.TaskManagement(initiator.TaskRequest{Function: f.function, LUN: f.lun, Referenced: &initiator.Task{ITT: 9}})
		if err != nil || code != f.want {
			t.Errorf("%s: response %d, %v, expected %d", f.name, code, err, f.want)
		}
	}
}

// A lost connection ends its commands like a task management function, and a
// second login of the same port waits for that.
func TestReinstatementWaitsForTheStore(t *testing.T) {
	r, store := holdingRig(t)
	a := r.login(initiator.Options{})
	heldWrite(t, a, store, 0)
	in := make(chan error, 1)
	go func() {
		c := r.dial(initiator.Options{Target: testTarget})
		in <- c.Ready(0)
	}()
	select {
	case err := <-in:
		t.Fatalf("logged in (%v) while the old session's write runs", err)
	case <-time.After(200 * time.Millisecond):
	}
	store.Release(-1)
	if err := <-in; err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected that the old session ends", err)
	}
}

// Commands that wait for one before them belong to the task set: they do not
// run after it was aborted.
func TestAbortTaskSetReachesHeldCommands(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	res, err := c.Command(cdbWrite16(0, 1), 0, pattern(512, 1), 0)
	mustGood(t, res, err)

	missing := c.CmdSN
	c.CmdSN++
	held := start(t, c, initiator.Command{CDB: cdbWrite16(0, 1), Out: pattern(512, 2)})
	if code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTaskSet}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	c.Forget(held)
	late := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	late.SetU32(16, initiator.NoTag)
	late.SetU32(20, initiator.NoTag)
	late.SetU32(24, missing)
	if err := c.Send(late); err != nil {
		t.Fatal(err)
	}
	res, err = c.Command(cdbRead16(0, 1), 0, nil, 512)
	if got := mustGood(t, res, err).In; !bytes.Equal(got, pattern(512, 1)) {
		t.Fatal("the aborted write was carried out")
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
