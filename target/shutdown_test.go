package target

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/target/scsi"
)

// closing is a store whose Close waits for that of another, and may fail.
type closing struct {
	backstore.Store
	barrier *sync.WaitGroup
	err     error
	dirty   int64
}

func (c *closing) Dirty() int64 { return c.dirty }

func (c *closing) Close() error {
	c.barrier.Done()
	c.barrier.Wait()
	return errors.Join(c.err, c.Store.Close())
}

// serverOf serves stores with little patience.
func serverOf(t *testing.T, flushTime time.Duration, stores ...backstore.Store) *Server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := NewServer(Config{Logger: log, Threads: 2, Buffers: 1 << 20, FlushTime: flushTime})
	if err != nil {
		t.Fatal(err)
	}
	for i, store := range stores {
		lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: string(rune('a' + i)), Store: store, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		s.AddLogicalUnit(lu, 1)
	}
	return s
}

func newMemstore(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// expectAll expects a message with all of the words.
func expectAll(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, expected %q in it", err, w)
		}
	}
}

// TestStoresCloseTogether: each store's Close waits for the others', and who has
// data that could not be written is named.
func TestStoresCloseTogether(t *testing.T) {
	var barrier sync.WaitGroup
	barrier.Add(3)
	good := &closing{newMemstore(t), &barrier, nil, 0}
	bad := &closing{newMemstore(t), &barrier, backstore.ErrNoSpace, 4096}
	err := serverOf(t, time.Minute, good, bad, &closing{newMemstore(t), &barrier, nil, 512}).Shutdown(t.Context())
	if !errors.Is(err, backstore.ErrNoSpace) {
		t.Errorf("error %v, expected that of a Close", err)
	}
	expectAll(t, err, "volume b: close", "4096 bytes")
	if strings.Contains(err.Error(), "volume a") || strings.Contains(err.Error(), "volume c") {
		t.Errorf("error %v, expected nothing of the others", err)
	}
}

// TestFlushThatHangs: the others are flushed all the same, and what is in use is
// not closed.
func TestFlushThatHangs(t *testing.T) {
	hangs, other := errstore.Wrap(newMemstore(t)), newMemstore(t)
	hangs.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Hold: true})
	s := serverOf(t, 50*time.Millisecond, hangs, other)
	err := s.Shutdown(t.Context())
	if !errors.Is(err, errUnended) {
		t.Errorf("error %v, expected that a flush has not ended", err)
	}
	expectAll(t, err, "volume a: flush")
	if strings.Contains(err.Error(), "volume b") {
		t.Errorf("error %v, expected nothing of volume b", err)
	}
	eventually.Holds(t, "the flush is released", func() bool { return hangs.Release(-1) > 0 })
	hangs.SetRules()
	patient := *s.settings.Load()
	patient.FlushTime = time.Minute
	s.Reconfigure(patient)
	if err := s.retire(nil); err != nil {
		t.Errorf("retire when nothing hangs any more: %v", err)
	}
}
