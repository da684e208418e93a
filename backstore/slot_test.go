package backstore_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
)

// reopened exchanges a file for the same one, opened with or without direct I/O.
func reopened(path string, direct bool) func(backstore.Store) (backstore.Store, error) {
	return func(old backstore.Store) (backstore.Store, error) {
		if err := old.Close(); err != nil {
			return old, err
		}
		return backstore.OpenFile(backstore.FileConfig{Path: path, Direct: direct})
	}
}

// TestSlotInUse: what is written while the store is exchanged again and again is
// there, and nothing fails.
func TestSlotInUse(t *testing.T) {
	const clients, rounds = 4, 60
	path := filepath.Join(diskDir(t), "store")
	slot := newSlot(t, must[backstore.Store](t)(backstore.OpenFile(backstore.FileConfig{Path: path, Size: backstoretest.Size})))
	loops := []*evloop.Loop{backstoretest.NewLoop(t, true), backstoretest.NewLoop(t, false)}
	var writers sync.WaitGroup
	for i := range clients {
		c := backstoretest.NewClient(t, slot, loops[i%2])
		writers.Go(func() {
			random, at := rand.New(rand.NewPCG(uint64(i), 1)), int64(i)*backstoretest.Size/clients
			for round := range rounds {
				off := at + 4096*random.Int64N(backstoretest.Size/clients/4096)
				want := backstoretest.Pattern(4096, uint64(i*rounds+round))
				if err := c.Do(backstore.Op{Kind: backstore.Write, Off: off, Data: want, FUA: round%8 == 0}); err != nil {
					t.Error(err)
				}
				got := backstoretest.Buffer(4096)
				if err := c.Do(backstore.Op{Kind: backstore.Read, Off: off, Data: got}); err != nil || !bytes.Equal(got, want) {
					t.Errorf("client %d, byte %d, error %v: what was written is not there", i, off, err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	exchanged := 0
	for over := false; !over; exchanged++ {
		if err := slot.Exchange(t.Context(), reopened(path, exchanged%2 == 0)); err != nil {
			t.Error(err)
		}
		select {
		case <-written:
			over = true
		default:
		}
	}
}

// TestSlotWaits: an exchange waits for what is under way, and what comes meanwhile
// for the exchange; one that takes too long changes nothing.
func TestSlotWaits(t *testing.T) {
	ram := must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 512))
	faulty := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	slot, loop := newSlot(t, faulty), backstoretest.NewLoop(t, false)
	c := backstoretest.NewClient(t, slot, loop)
	write := backstore.Op{Kind: backstore.Write, Off: 4096, Data: backstoretest.Pattern(4096, 1)}
	written := c.Go(&write)
	backstoretest.On(loop, func() {})
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := slot.Exchange(short, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("found %v, expected that the write was waited for in vain", err)
	}
	read := backstore.Op{Kind: backstore.Read, Off: 0, Data: backstoretest.Buffer(4096)}
	if err := c.Run(&read); err != nil {
		t.Errorf("found %v, expected that the store goes on", err)
	}

	exchanged, came := make(chan error), make(chan struct{})
	var later *backstoretest.Client
	var waited <-chan struct{}
	go func() {
		exchanged <- slot.Exchange(t.Context(), func(old backstore.Store) (backstore.Store, error) {
			if old != faulty {
				t.Errorf("found another store in the slot")
			}
			lane, err := slot.Lane(loop) // one that is opened meanwhile
			if err != nil {
				t.Error(err)
			}
			later = &backstoretest.Client{Loop: loop, Lane: lane}
			waited = later.Go(&read)
			close(came)
			return ram, nil
		})
	}()
	select {
	case <-came:
		t.Fatal("the store was exchanged under a write")
	default:
	}
	faulty.Release(-1)
	<-written
	<-came
	if err := <-exchanged; err != nil {
		t.Fatal(err)
	}
	<-waited
	if got := later.Read(t, 4096, 4096); !bytes.Equal(got, write.Data) || slot.Content() != ram {
		t.Error("what was written before the exchange is not there")
	}
	backstoretest.On(loop, later.Lane.Close)
}

// TestSlotEmpty: without a store all operations fail, and another exchange ends that.
func TestSlotEmpty(t *testing.T) {
	ram := must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 512))
	slot, refused := newSlot(t, ram), errors.New("no such file")
	c := backstoretest.NewClient(t, slot, backstoretest.NewLoop(t, false))
	want := backstoretest.Pattern(4096, 1)
	c.Write(t, 0, want)
	if err := slot.Exchange(t.Context(), func(backstore.Store) (backstore.Store, error) { return nil, refused }); err != refused {
		t.Errorf("found %v", err)
	}
	read := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(4096)}
	if err := c.Run(&read); !errors.Is(err, backstore.ErrGone) || !errors.Is(err, refused) || slot.Info() != ram.Info() || !slot.Empty() {
		t.Errorf("found %v from %+v, expected that there is no store", err, slot.Info())
	}
	if err := slot.Exchange(t.Context(), func(backstore.Store) (backstore.Store, error) { return ram, nil }); err != nil || slot.Empty() {
		t.Error(err)
	}
	if got := c.Read(t, 0, 4096); !bytes.Equal(got, want) {
		t.Error("found other data in the store that is back")
	}
}

// TestSlotServesAsItsStore: a store in a slot is as any other.
func TestSlotServesAsItsStore(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store { return backstore.NewSlot(newMem(t, true)) }})
}

// newSlot returns a slot that is closed when the test ends, after its lanes.
func newSlot(t *testing.T, store backstore.Store) *backstore.Slot {
	slot := backstore.NewSlot(store)
	t.Cleanup(func() {
		if err := slot.Close(); err != nil {
			t.Error(err)
		}
	})
	return slot
}

// TestSlotCancel: what waits for an exchange can be taken back, and nothing else can.
func TestSlotCancel(t *testing.T) {
	ram := must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 512))
	slot, loop := newSlot(t, ram), backstoretest.NewLoop(t, false)
	c := backstoretest.NewClient(t, slot, loop)
	if err := slot.Exchange(t.Context(), func(old backstore.Store) (backstore.Store, error) {
		kept := backstore.Op{Kind: backstore.Write, Off: 0, Data: backstoretest.Pattern(4096, 1)}
		back := backstore.Op{Kind: backstore.Write, Off: 4096, Data: backstoretest.Pattern(4096, 2)}
		written := c.Go(&kept)
		back.Done = func(*backstore.Op) { t.Error("the operation that was taken back has ended") }
		backstoretest.On(loop, func() {
			if c.Lane.Submit(&back) || !backstore.Cancel(c.Lane, &back) || backstore.Cancel(c.Lane, &back) {
				t.Error("an operation that waits could not be taken back once")
			}
		})
		t.Cleanup(func() { <-written })
		return old, nil
	}); err != nil {
		t.Fatal(err)
	}
	got := backstoretest.Buffer(4096)
	if err := c.Do(backstore.Op{Kind: backstore.Read, Off: 4096, Data: got}); err != nil || bytes.Equal(got, backstoretest.Pattern(4096, 2)) {
		t.Errorf("error %v: what was taken back is written", err)
	}
	if backstore.Cancel(nil, &backstore.Op{}) {
		t.Error("something was taken back from nowhere")
	}
}

// lingering is a store whose first lane that is closed waits for the test.
type lingering struct {
	backstore.Store
	lingers      atomic.Bool
	closes, goOn chan struct{}
}

// Lane implements backstore.Store.
func (s *lingering) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := s.Store.Lane(l)
	return lingeringLane{inner, s}, err
}

type lingeringLane struct {
	backstore.Lane
	store *lingering
}

// Close implements backstore.Lane.
func (l lingeringLane) Close() {
	if l.store.lingers.CompareAndSwap(true, false) {
		close(l.store.closes)
		<-l.store.goOn
	}
	l.Lane.Close()
}

// TestSlotWhileThreadsEnd: an exchange does not wait for threads that have closed their lanes
// and ended meanwhile.
func TestSlotWhileThreadsEnd(t *testing.T) {
	mem, err := memstore.New(memstore.Config{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	store := &lingering{Store: mem, closes: make(chan struct{}), goOn: make(chan struct{})}
	store.lingers.Store(true)
	slot := backstore.NewSlot(store)
	loops := make(map[*evloop.Loop]backstore.Lane)
	for range 8 { // the exchange comes to most of them after the one that lingers
		loop := backstoretest.NewLoop(t, false)
		if loops[loop], err = slot.Lane(loop); err != nil {
			t.Fatal(err)
		}
	}
	exchanged := make(chan error, 1)
	go func() {
		exchanged <- slot.Exchange(context.Background(), func(s backstore.Store) (backstore.Store, error) { return s, nil })
	}()
	<-store.closes
	var ends sync.WaitGroup
	var ended atomic.Int32
	for loop, lane := range loops {
		ends.Go(func() {
			backstoretest.On(loop, lane.Close)
			loop.Stop()
			ended.Add(1)
		})
	}
	eventually.Finds(t, "threads that have ended", int32(len(loops)-1), ended.Load)
	close(store.goOn)
	select {
	case err := <-exchanged:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("the exchange waits for threads that have ended")
	}
	ends.Wait()
}
