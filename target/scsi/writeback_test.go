package scsi

import (
	"bytes"
	"io"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/cache"
	"lunar/cache/tier"
	"lunar/target/scsi/sense"
)

// writeBack is a unit behind a cache that writes back, over a medium that can be
// made to fail.
type writeBack struct {
	a, b   *initiator
	medium *memstore.Store
	faults *errstore.Store
	failed chan struct{} // one for each deferred error
}

func newWriteBack(t *testing.T) *writeBack {
	t.Helper()
	medium, err := memstore.New(memstore.Config{Size: mib})
	if err != nil {
		t.Fatal(err)
	}
	w := &writeBack{medium: medium, faults: errstore.Wrap(medium), failed: make(chan struct{}, 100)}
	shared, err := tier.New(tier.Config{
		Layout: cache.Layout{BlockSize: 8192, Neighbours: 2, Partitions: 2, Nodes: 1}, Bytes: mib, LUs: 1, Logger: testLogger(io.Discard),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lu *LogicalUnit
	store, err := shared.Wrap(w.faults, tier.VolumeConfig{
		Policy: tier.Back, Age: time.Millisecond, Retry: time.Millisecond,
		OnFlushError: func(off int64, err error) {
			lu.DeferredError(off, err)
			w.failed <- struct{}{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if lu, err = NewLogicalUnit(LUConfig{Name: "v", Store: store, Logger: testLogger(io.Discard)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.faults.SetRules()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	w.a, w.b = newInitiator(t, lu), newInitiator(t, lu)
	return w
}

// refuse makes writes below fail.
func (w *writeBack) refuse(err error) {
	w.faults.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Err: err})
}

func expectStatus(t *testing.T, p *loopPort, want *sense.Data) {
	t.Helper()
	if got := p.c.Sense; want == nil && p.c.Status != Good || want != nil && (got == nil || *got != *want) {
		t.Errorf("CDB %x: status %02x, sense %+v, expected %+v", p.c.CDB[:10], p.c.Status, got, want)
	}
}

// TestDeferredErrorOfCache: who wrote hears that the medium refuses the data; they
// are kept, and nothing is lost when it takes them again.
func TestDeferredErrorOfCache(t *testing.T) {
	w := newWriteBack(t)
	data := backstoretest.Pattern(4096, 1)
	w.refuse(errOfTest)
	expectStatus(t, w.a.send(cdb16(0x8a, 0, 16, 8), data, 0, false), nil)
	<-w.failed
	expectStatus(t, w.b.send([]byte{0}, nil, 0, false), nil)
	deferred := sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, Deferred: true, InfoValid: true, Info: 16}
	expectStatus(t, w.a.send(syncCDB, nil, 0, false), &deferred)
	current := sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError}
	expectStatus(t, w.a.send(syncCDB, nil, 0, false), &current)
	if got := w.b.send(cdb16(0x88, 0, 16, 8), nil, 4096, false).in; !bytes.Equal(got, data) {
		t.Error("the cache does not have what was acknowledged")
	}
	w.faults.SetRules()
	expectStatus(t, w.a.send(syncCDB, nil, 0, false), nil)
	if !bytes.Equal(w.medium.CrashClone(1).Bytes()[16*512:][:4096], data) {
		t.Error("the medium does not have what was flushed")
	}
}

// TestWriteCacheOffFails: MODE SELECT that clears WCE tells that the cache could
// not be emptied.
func TestWriteCacheOffFails(t *testing.T) {
	w := newWriteBack(t)
	page := make([]byte, 4+20)
	page[4], page[5] = 0x08, 0x12
	off := []byte{0x15, 0x10, 0, 0, byte(len(page)), 0}
	w.refuse(backstore.ErrNoSpace)
	expectStatus(t, w.a.send(cdb16(0x8a, 0, 16, 8), backstoretest.Pattern(4096, 1), 0, false), nil)
	expectStatus(t, w.b.send(off, page, 0, false), sense.SpaceAllocationFailed)
	<-w.failed
	deferred := *sense.SpaceAllocationFailed
	deferred.Deferred = true
	w.a.nexus.takeAttention() // MODE PARAMETERS CHANGED
	expectStatus(t, w.a.send([]byte{0}, nil, 0, false), &deferred)
}

// TestShrinkThroughCache: unit, cache and medium end at the same block.
func TestShrinkThroughCache(t *testing.T) {
	w := newWriteBack(t)
	lu := w.a.nexus.LU
	expectStatus(t, w.a.send(cdb16(0x8a, 0, 0, 256), backstoretest.Pattern(256*512, 1), 0, false), nil)
	const cut = 101
	for _, blocks := range []int64{cut, 300} {
		if err := lu.Resize(blocks * 512); err != nil {
			t.Fatal(err)
		}
		expectStatus(t, w.b.send([]byte{0}, nil, 0, false), &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCCapacityChanged})
		expectStatus(t, w.b.send(cdb16(0x88, 0, uint64(blocks)-1, 2), nil, 1024, false), sense.LBAOutOfRange)
	}
	w.a.nexus.takeAttention()
	want := append(backstoretest.Pattern(256*512, 1)[:cut*512:cut*512], make([]byte, (300-cut)*512)...)
	if got := w.a.send(cdb16(0x88, 0, 0, 300), nil, 300*512, false).in; !bytes.Equal(got, want) {
		t.Error("what was behind the end came back, or what was before it is lost")
	}
	expectStatus(t, w.a.send(syncCDB, nil, 0, false), nil)
	if !bytes.Equal(w.medium.Bytes(), want) {
		t.Error("the medium differs")
	}
}
