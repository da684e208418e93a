package target_test

import (
	"bytes"
	"fmt"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// spread is a rig whose unit is served by several threads, with a session on
// each, and whose writes to the first MiB end when the test lets them.
func spread(t *testing.T, threads int) ([]*initiator.Conn, *errstore.Store) {
	t.Helper()
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	o := rigOptions{store: store, group: threads}
	o.config.Threads = threads
	r := newRig(t, o)
	var sessions []*initiator.Conn
	for i := range threads {
		sessions = append(sessions, r.login(initiator.Options{ISID: [6]byte{byte(i + 1)}}))
	}
	return sessions, store
}

func withNACA(cdb []byte) []byte {
	cdb[len(cdb)-1] |= 0x04
	return cdb
}

// waits starts a command and reports whether it has not ended when everything
// has that could run at once.
func waits(t *testing.T, c *initiator.Conn, cmd initiator.Command) (*initiator.Task, bool) {
	t.Helper()
	task := start(t, c, cmd)
	for range 2 {
		if err := c.Ping([]byte("after it")); err != nil {
			t.Fatal(err)
		}
	}
	return task, !task.Done
}

func status(t *testing.T, c *initiator.Conn, cmd initiator.Command) byte {
	t.Helper()
	res, err := c.Do(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status
}

// TestOrderedOverThreads: an ORDERED command waits for a write of another
// session on another thread, and holds back what a third sends later; HEAD OF
// QUEUE and INQUIRY pass.
func TestOrderedOverThreads(t *testing.T) {
	s, store := spread(t, 3)
	older := heldWrite(t, s[0], store, 0)
	ordered, ok := waits(t, s[1], initiator.Command{CDB: cdbWrite16(4096, 8), Out: pattern(4096, 2), Attr: initiator.AttrOrdered})
	if !ok {
		t.Fatal("an ORDERED command ended before an older one")
	}
	var newer []*initiator.Task
	for _, attr := range []byte{initiator.AttrSimple, initiator.AttrUntagged} {
		task, ok := waits(t, s[2], initiator.Command{CDB: cdbRead16(4096, 8), InLen: 4096, Attr: attr})
		if !ok {
			t.Fatalf("a command with attribute %d ended before an older ORDERED one", attr)
		}
		newer = append(newer, task)
	}
	mustGood(t, &initiator.Result{Status: status(t, s[2], initiator.Command{CDB: []byte{0x12, 0, 0, 0, 36, 0}, InLen: 36})}, nil)
	mustGood(t, &initiator.Result{Status: status(t, s[2], initiator.Command{CDB: cdbRead16(8192, 8), InLen: 4096, Attr: initiator.AttrHeadOfQueue})}, nil)
	if older.Done || ordered.Done || newer[0].Done {
		t.Fatal("something has ended while the store holds the oldest write")
	}
	store.Release(-1)
	for c, tasks := range map[*initiator.Conn][]*initiator.Task{s[0]: {older}, s[1]: {ordered}, s[2]: newer} {
		for _, task := range tasks {
			res, err := c.Wait(task)
			mustGood(t, res, err)
			if task.Command.InLen > 0 && !bytes.Equal(res.In, pattern(4096, 2)) {
				t.Error("a newer command did not see what the ORDERED one wrote")
			}
		}
	}
}

// TestWaitingHoldsNoBuffer: what came unasked for a command that waits is not in the
// memory that the ORDERED one before it needs.
func TestWaitingHoldsNoBuffer(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Buffers: 512 << 10, NoRing: true}})
	c := r.login(initiator.Options{Keys: initiator.Keys{{Name: "InitialR2T", Value: "No"}, {Name: "FirstBurstLength", Value: "4096"}}})
	written := pattern(18*512, 3)
	first := start(t, c, initiator.Command{CDB: cdbWrite16(0, 25), Out: pattern(25*512, 2), Attr: initiator.AttrOrdered})
	large := start(t, c, initiator.Command{CDB: cdbRead16(0, 636), InLen: 636 * 512, Attr: initiator.AttrOrdered})
	newer := start(t, c, initiator.Command{CDB: cdbWrite16(1125, 18), Out: written, Segment: 512})
	for _, task := range []*initiator.Task{first, large, newer} {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	res, err := c.Command(cdbRead16(1125, 18), 0, nil, len(written))
	if !bytes.Equal(mustGood(t, res, err).In, written) {
		t.Error("other data than was written unasked")
	}
}

// TestAbortOrdered: an ORDERED command that waits is aborted at once, and what
// waited for it goes on.
func TestAbortOrdered(t *testing.T) {
	s, store := spread(t, 3)
	older := heldWrite(t, s[0], store, 0)
	ordered, _ := waits(t, s[1], initiator.Command{CDB: cdbWrite16(4096, 8), Out: pattern(4096, 2), Attr: initiator.AttrOrdered})
	newer, ok := waits(t, s[2], initiator.Command{CDB: cdbRead16(4096, 8), InLen: 4096})
	if !ok {
		t.Fatal("a newer command did not wait")
	}
	if code, err := s[1].TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: ordered}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	s[1].Forget(ordered)
	res, err := s[2].Wait(newer)
	if in := mustGood(t, res, err).In; !bytes.Equal(in, make([]byte, 4096)) {
		t.Error("the aborted command wrote something")
	}
	store.Release(-1)
	res, err = s[0].Wait(older)
	mustGood(t, res, err)
}

// TestLostSessionOfOrdered: the session of an ORDERED command ends while it
// waits; the others go on.
func TestLostSessionOfOrdered(t *testing.T) {
	s, store := spread(t, 3)
	older := heldWrite(t, s[0], store, 0)
	if _, ok := waits(t, s[1], initiator.Command{CDB: cdbWrite16(4096, 8), Out: pattern(4096, 2), Attr: initiator.AttrOrdered}); !ok {
		t.Fatal("an ORDERED command ended before an older one")
	}
	s[1].Close()
	res, err := s[2].Command(cdbRead16(4096, 8), 0, nil, 4096)
	mustGood(t, res, err)
	store.Release(-1)
	res, err = s[0].Wait(older)
	mustGood(t, res, err)
}

// TestOrderedInOneQueue: sessions on all threads queue SIMPLE writes, an ORDERED
// one and a read of the same blocks, again and again: each reads what its ORDERED
// command wrote.
func TestOrderedInOneQueue(t *testing.T) {
	s, store := spread(t, 3)
	store.SetRules()
	done := make(chan error)
	for i, c := range s {
		go func() { done <- queueOrdered(c, uint64(8*i), byte(i)) }()
	}
	for range s {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func queueOrdered(c *initiator.Conn, lba uint64, seed byte) error {
	for round := range 25 {
		var tasks []*initiator.Task
		for i, attr := range []byte{
			initiator.AttrSimple, initiator.AttrSimple, initiator.AttrHeadOfQueue, initiator.AttrOrdered, initiator.AttrSimple,
		} {
			cmd := initiator.Command{CDB: cdbWrite16(lba, 8), Out: pattern(4096, seed+byte(8*round+i)), Attr: attr}
			if i == 4 {
				cmd = initiator.Command{CDB: cdbRead16(lba, 8), InLen: 4096}
			}
			task, err := c.Start(cmd)
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
		for i, task := range tasks {
			res, err := c.Wait(task)
			switch {
			case err != nil:
				return err
			case res.Status != 0:
				return fmt.Errorf("command %d of round %d: status %02x", i, round, res.Status)
			case i == 4 && !bytes.Equal(res.In, pattern(4096, seed+byte(8*round+3))):
				return fmt.Errorf("round %d: the read did not see what the ORDERED write before it wrote", round)
			}
		}
	}
	return nil
}

// TestACAOverSessions: a command with NACA that fails keeps everybody out but one
// command with the ACA attribute, until CLEAR ACA.
func TestACAOverSessions(t *testing.T) {
	s, _ := spread(t, 2)
	ready := initiator.Command{CDB: make([]byte, 6)}
	expect := func(what string, c *initiator.Conn, cmd initiator.Command, want byte) {
		t.Helper()
		if got := status(t, c, cmd); got != want {
			t.Errorf("%s: status %02x, expected %02x", what, got, want)
		}
	}
	establish := func() {
		t.Helper()
		expect("beyond the end", s[0], initiator.Command{CDB: withNACA(cdbRead16(1<<40, 1)), InLen: 512}, initiator.StatusCheckCondition)
	}
	aca := initiator.Command{CDB: cdbRead16(8192, 8), InLen: 4096, Attr: initiator.AttrACA}
	expect("ACA attribute without the condition", s[0], aca, initiator.StatusCheckCondition)
	establish()
	expect("own", s[0], ready, initiator.StatusACAActive)
	expect("other", s[1], ready, initiator.StatusBusy)
	expect("ACA attribute", s[0], aca, initiator.StatusGood)
	expect("ACA attribute of another", s[1], aca, initiator.StatusACAActive)
	for _, c := range []*initiator.Conn{s[1], s[0]} {
		if code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.ClearACA}); err != nil || code != 0 {
			t.Fatalf("response %d, %v", code, err)
		}
		if c == s[1] {
			expect("after CLEAR ACA of another", s[1], ready, initiator.StatusBusy)
		}
	}
	expect("own, cleared", s[0], ready, initiator.StatusGood)
	expect("other, cleared", s[1], ready, initiator.StatusGood)
	establish()
	if code, err := s[1].TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	expectAttention(t, s[0], 0x29, 3)
	expect("own, reset", s[0], ready, initiator.StatusGood)
	expectAttention(t, s[1], 0x29, 3)
	establish()
	if _, err := s[0].Logout(0); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the condition ends with its nexus", func() bool { return status(t, s[1], ready) == initiator.StatusGood })
}

// TestClearACAEndsItsCommand: CLEAR ACA is ABORT TASK for the command with the
// ACA attribute.
func TestClearACAEndsItsCommand(t *testing.T) {
	s, store := spread(t, 2)
	if got := status(t, s[0], initiator.Command{CDB: withNACA(cdbRead16(1<<40, 1)), InLen: 512}); got != initiator.StatusCheckCondition {
		t.Fatalf("status %02x", got)
	}
	before := store.Held()
	task := start(t, s[0], initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 1), Attr: initiator.AttrACA})
	eventually.Holds(t, "write held", func() bool { return store.Held() > before })
	if got := status(t, s[0], initiator.Command{CDB: make([]byte, 6), Attr: initiator.AttrACA}); got != initiator.StatusACAActive {
		t.Errorf("a second command with the ACA attribute: status %02x", got)
	}
	if code := respondsOnlyAfter(t, s[0], initiator.TaskRequest{Function: initiator.ClearACA}, func() { store.Release(-1) }); code != 0 {
		t.Errorf("response %d", code)
	}
	s[0].Forget(task)
	if got := status(t, s[1], initiator.Command{CDB: make([]byte, 6)}); got != 0 {
		t.Errorf("another nexus afterwards: status %02x", got)
	}
}
