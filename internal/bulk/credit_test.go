package bulk_test

import (
	"bytes"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/bulk"
	"lunar/internal/eventually"
)

// TestStoreHalts: when the sink's store halts, the source sends as many blocks as the sink has
// memory for, and stops; then all of it arrives, once (aces-stall).
func TestStoreHalts(t *testing.T) { overEach(t, overStoreHalts) }

func overStoreHalts(t *testing.T, n network) {
	const size, pool = 40 * mib, 32
	from, to := newMedium(t, size), newSideOf(t, n, size)
	for n := range bulk.Blocks(size) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	var halted *errstore.Store
	err := to.slot.Exchange(t.Context(), func(s backstore.Store) (backstore.Store, error) {
		halted = errstore.Wrap(s, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
		return halted, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	received, progress := to.receive(t.Context()), &bulk.Progress{}
	ended, link := make(chan error, 1), dial(t, to)
	go func() {
		_, err := bulk.Send(t.Context(), link, origin(from), bulk.Options{Channels: 2, Cores: 2, Progress: progress})
		ended <- err
	}()
	eventually.Finds(t, "bytes that were sent to a store that halts", int64(pool*mib), progress.Moved)
	eventually.Finds(t, "writes that are held, of four blocks in four parts", 16, halted.Held)
	if moved := progress.Moved(); moved != pool*mib {
		t.Errorf("found %d bytes sent, expected what the sink has memory for", moved)
	}
	halted.SetRules()
	halted.Release(-1)
	r := <-received
	if err := <-ended; err != nil || r.err != nil || r.Stored != size/mib || r.Repeated != 0 || !bytes.Equal(from.contents(t), to.contents(t)) {
		t.Errorf("found %v and %+v, %v", err, r.Received, r.err)
	}
}
