package target_test

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// delayedReads is a rig whose reads end only when the test lets them, so that
// they keep their buffers.
func delayedReads(t *testing.T, config target.Config) (*rig, *errstore.Store) {
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
	r, store := delayedReads(t, target.Config{Threads: 1, Buffers: 1 << 20})
	var readers []*initiator.Conn
	var reads []*initiator.Task
	for i := range 2 {
		c := r.login(initiator.Options{ISID: [6]byte{1, byte(i)}})
		readers = append(readers, c)
		reads = append(reads, start(t, c, initiator.Command{CDB: cdbRead16(0, 1024), InLen: 512 << 10}))
	}
	eventually.Holds(t, "reads hold all memory", func() bool { return store.Held() == 4 })
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
