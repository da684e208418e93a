package target_test

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/tier"
	"lunar/internal/initiator"
	"lunar/target"
)

// cachedStore is memory behind a cache that can hold all of it.
func cachedStore(t *testing.T, size int64) backstore.Store {
	t.Helper()
	ram, err := backstore.NewRAM(size, 512)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tier.New(tier.Config{
		Layout: cache.Layout{BlockSize: 64 << 10, Neighbours: 1, Partitions: 2, Nodes: 1}, Bytes: 2 * size, LUs: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := c.Wrap(ram, tier.VolumeConfig{ID: 1, Name: "v", Policy: tier.Back})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestLentDataCountInTheBudget: sessions that read more cached data at a time
// than they may hold get all of it, in their turn.
func TestLentDataCountInTheBudget(t *testing.T) {
	const size, depth, piece = 4 << 20, 96, 256 << 10
	store := cachedStore(t, size)
	r := newRig(t, rigOptions{store: store, config: target.Config{Threads: 1, Limits: target.Limits{SessionMemory: piece}}})
	conns := []*initiator.Conn{r.login(initiator.Options{Initiator: "iqn.2026-11.lunar:a"}), r.login(initiator.Options{Initiator: "iqn.2026-11.lunar:b"})}
	data := pattern(size, 7)
	for off := 0; off < size; off += piece {
		res, err := conns[0].Command(cdbWrite16(uint64(off/512), piece/512), 0, data[off:off+piece], 0)
		mustGood(t, res, err)
	}
	for range 4 {
		tasks := make([][]*initiator.Task, len(conns))
		for i := range depth {
			for n, c := range conns {
				tasks[n] = append(tasks[n], start(t, c, initiator.Command{CDB: cdbRead16(uint64(i*piece%size/512), piece/512), InLen: piece}))
			}
		}
		time.Sleep(30 * time.Millisecond) // the sockets fill up, and the budgets with them
		for n, c := range conns {
			for i, task := range tasks[n] {
				res, err := c.Wait(task)
				mustGood(t, res, err)
				if !bytes.Equal(res.In, data[i*piece%size:][:piece]) {
					t.Errorf("read %d of session %d: not what was written", i, n)
				}
			}
		}
	}
}
