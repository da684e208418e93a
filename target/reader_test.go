package target_test

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

const readerName = "iqn.2026-11.test:reader"

// readersRig shows a unit, whose store holds reads, to a reader and to those who may
// write.
func readersRig(t *testing.T) (*rig, *errstore.Store) {
	t.Helper()
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	return newRig(t, rigOptions{store: store, config: target.Config{Threads: 1}, rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{
			{Initiators: []string{readerName}, Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: lus[0], ReadOnly: true}}},
			{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: lus[0]}}},
		}
	}}), store
}

// A reader's task management ends none of the commands of others, who hear nothing of
// it. Its LOGICAL UNIT RESET ends its own, so that it recovers from a store that hangs.
func TestReaderEndsNobodysTasks(t *testing.T) {
	for name, f := range map[string]struct {
		function, response byte
		own                bool // the reader's own command ends
	}{
		"CLEAR TASK SET":     {initiator.ClearTaskSet, 6, false},
		"LOGICAL UNIT RESET": {initiator.LogicalUnitReset, 0, true},
		"TARGET WARM RESET":  {initiator.TargetWarmReset, 6, false},
		"TARGET COLD RESET":  {initiator.TargetColdReset, 6, false},
		"ABORT TASK SET":     {initiator.AbortTaskSet, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, store := readersRig(t)
			writer := r.login(initiator.Options{ISID: [6]byte{1}})
			reader := r.login(initiator.Options{ISID: [6]byte{2}, Initiator: readerName})
			res, err := writer.Command([]byte{0x1a, 0x08, 0x0a, 0, 16, 0}, 0, nil, 16)
			swp := mustGood(t, res, err).In // the control page, for changeable state that a reset takes back
			swp[0], swp[2], swp[4], swp[8] = 0, 0, 0x0a, swp[8]|0x08
			res, err = writer.Do(initiator.Command{CDB: []byte{0x15, 0x10, 0, 0, byte(len(swp)), 0}, Out: swp})
			mustGood(t, res, err)
			expectAttention(t, reader, 0x2a, 0x01)

			store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
			others := start(t, writer, initiator.Command{CDB: cdbRead16(0, 1), InLen: 512})
			eventually.Holds(t, "the writer's read is held", func() bool { return store.Held() == 1 })
			own := start(t, reader, initiator.Command{CDB: cdbRead16(8, 1), InLen: 512})
			eventually.Holds(t, "the reader's read is held", func() bool { return store.Held() == 2 })
			store.SetRules()

			asked := initiator.TaskRequest{Function: f.function}
			var code byte
			if f.own {
				code = respondsOnlyAfter(t, reader, asked, func() { store.Release(-1) })
				reader.Forget(own)
			} else if code, err = reader.TaskManagement(asked); err != nil {
				t.Fatal(err)
			} else {
				store.Release(-1)
				res, err := reader.Wait(own)
				mustGood(t, res, err)
			}
			if code != f.response {
				t.Errorf("response %d, expected %d", code, f.response)
			}
			res, err = writer.Wait(others)
			mustGood(t, res, err)
			res, err = writer.Command(make([]byte, 6), 0, nil, 0)
			mustGood(t, res, err) // no unit attention
			res, err = writer.Do(initiator.Command{CDB: cdbWrite16(0, 1), Out: make([]byte, 512)})
			if key, asc, q := res.SenseKey(); err != nil || key != 7 || asc != 0x27 || q != 2 {
				t.Errorf("sense %x/%02x/%02x, %v, expected software write protection as it was", key, asc, q, err)
			}
			refused := r.server.Threads()[0].Refused[refusals.Function.String()]
			if want := f.function != initiator.AbortTaskSet; (refused == 1) != want {
				t.Errorf("%d refusals counted, expected one: %v", refused, want)
			}
		})
	}
}

// Who may write resets as before.
func TestWriterResetsReaders(t *testing.T) {
	r, _ := readersRig(t)
	writer := r.login(initiator.Options{ISID: [6]byte{1}})
	reader := r.login(initiator.Options{ISID: [6]byte{2}, Initiator: readerName})
	if code, err := writer.TaskManagement(initiator.TaskRequest{Function: initiator.TargetWarmReset}); err != nil || code != 0 {
		t.Fatalf("response %d, %v", code, err)
	}
	expectAttention(t, reader, 0x29, 0x03)
}

// Whatever attribute a reader's command has, and however long it lasts, who writes does
// not wait for it. Its own commands do.
func TestWritersPassReaders(t *testing.T) {
	for name, attribute := range map[string]byte{"SIMPLE": initiator.AttrSimple, "ORDERED": initiator.AttrOrdered, "HEAD OF QUEUE": initiator.AttrHeadOfQueue} {
		t.Run(name, func(t *testing.T) {
			r, store := readersRig(t)
			writer := r.login(initiator.Options{ISID: [6]byte{1}})
			reader := r.login(initiator.Options{ISID: [6]byte{2}, Initiator: readerName})
			store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
			lasting := start(t, reader, initiator.Command{CDB: cdbRead16(0, 8), InLen: 8 * 512, Attr: attribute})
			eventually.Holds(t, "the read is held", func() bool { return store.Held() == 1 })
			own := start(t, reader, initiator.Command{CDB: []byte{0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0}, InLen: 8, Attr: initiator.AttrOrdered})
			for _, a := range []byte{initiator.AttrSimple, initiator.AttrOrdered, initiator.AttrHeadOfQueue} {
				res, err := writer.Do(initiator.Command{CDB: cdbWrite16(16, 1), Out: make([]byte, 512), Attr: a})
				mustGood(t, res, err)
			}
			if own.Done {
				t.Error("the reader's ORDERED command did not wait for its read")
			}
			store.SetRules()
			store.Release(-1)
			for _, task := range []*initiator.Task{lasting, own} {
				res, err := reader.Wait(task)
				mustGood(t, res, err)
			}
		})
	}
}
