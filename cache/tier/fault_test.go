package tier

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

var errMedium = errors.New("medium error of the test")

// faulty is a volume whose store below can be made to fail.
type faulty struct {
	*backstoretest.Client
	volume backstore.Store
	cache  *Cache
	faults *errstore.Store
	medium *memstore.Store
	heard  atomic.Int32 // calls of OnFlushError
}

func newFaulty(t *testing.T, s setup) *faulty {
	f := &faulty{medium: newMem(t, false)}
	f.faults = errstore.Wrap(f.medium)
	s.volume.OnFlushError = func(int64, error) { f.heard.Add(1) }
	f.volume, f.cache = s.wrap(t, f.faults)
	t.Cleanup(func() {
		f.faults.SetRules()
		if err := f.volume.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Client = backstoretest.NewClient(t, f.volume, backstoretest.NewLoop(t, false))
	return f
}

// same expects the volume to read as the medium does.
func (f *faulty) same(t *testing.T) {
	t.Helper()
	if !bytes.Equal(f.Read(t, 0, backstoretest.Size), f.medium.Bytes()) {
		t.Fatal("the cache serves other data than the store below")
	}
}

var (
	reads  = []backstore.Kind{backstore.Read}
	writes = []backstore.Kind{backstore.Write}
)

func TestFailedFill(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		f := newFaulty(t, large.with(policy, "lru"))
		f.faults.SetRules(errstore.Rule{Kinds: reads, Off: 8 * page, Len: page, Err: errMedium})
		op := backstore.Op{Kind: backstore.Read, Off: 6 * page, Data: backstoretest.Buffer(4 * page)}
		if err := f.Do(op); !errors.Is(err, errMedium) {
			t.Fatalf("%v: a read of a bad sector ended with %v", policy, err)
		}
		f.Read(t, 7*page, page)
		part := backstore.Op{Kind: backstore.Write, Off: 8*page + sector, Data: backstoretest.Pattern(sector, 1)}
		if err := f.Do(part); policy == Back && !errors.Is(err, errMedium) || policy == Through && err != nil {
			t.Fatalf("%v: a write into a page that cannot be read ended with %v", policy, err)
		}
		f.faults.SetRules()
		f.Must(t, part)
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		f.same(t)
	}
}

// What is being read ahead when its lane is closed ends with what the store below
// is doing: nothing more is asked of the store.
func TestCloseWhileReadingAhead(t *testing.T) {
	f := newFaulty(t, large.with(Through, "lru"))
	f.Read(t, 2*page, page) // leaves a hole: the block is filled in two runs
	loop := backstoretest.NewLoop(t, false)
	other, err := f.volume.Lane(loop)
	if err != nil {
		t.Fatal(err)
	}
	f.faults.SetRules(errstore.Rule{Kinds: reads, Hold: true})
	backstoretest.On(loop, func() { other.(*lane).ahead.fetch(0, 64<<10) })
	eventually.Holds(t, "the first run is under way", func() bool { return f.faults.Held() == 1 })
	backstoretest.On(loop, other.Close)
	f.faults.Release(-1)
	eventually.Holds(t, "the fetch has ended", func() bool { return f.cache.Stats().FillFails == 1 || f.faults.Held() > 0 })
	if n := f.faults.Held(); n > 0 {
		t.Errorf("%d reads were begun after the lane was closed", n)
	}
	f.faults.SetRules()
	f.faults.Release(-1)
	f.Read(t, 0, 64<<10-page)
}

// Whoever waits for a fill that fails asks for the data again, rather than fail
// with it: the error may be of what others wanted, or have passed.
func TestWaitersSurviveFailedFill(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		f := newFaulty(t, large.with(policy, "lru"))
		data := backstoretest.Pattern(4*page, 1)
		backstoretest.NewClient(t, f.medium, f.Loop).Write(t, 0, data)
		f.faults.SetRules(errstore.Rule{Kinds: reads, Hold: true, Err: errMedium, Times: 1})
		first := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(4 * page)}
		failed := f.Go(&first)
		eventually.Holds(t, "the fill is under way", func() bool { return f.faults.Held() == 1 })
		var others [3]backstore.Op
		var done []<-chan struct{}
		for i := range others {
			others[i] = backstore.Op{Kind: backstore.Read, Off: int64(i) * page, Data: backstoretest.Buffer(page)}
			done = append(done, f.Go(&others[i]))
		}
		eventually.Holds(t, "the others wait", func() bool { return f.cache.Stats().Waits == uint64(len(others)) })
		f.faults.Release(-1)
		if <-failed; !errors.Is(first.Err, errMedium) {
			t.Errorf("%v: the read that failed below ended with %v", policy, first.Err)
		}
		for i := range others {
			if <-done[i]; others[i].Err != nil || !bytes.Equal(others[i].Data, data[i*page:][:page]) {
				t.Errorf("%v: a read that waited ended with %v, or has wrong data", policy, others[i].Err)
			}
		}
		if stats := f.cache.Stats(); stats.FillFails != 1 {
			t.Errorf("%v: %d fills failed, expected 1", policy, stats.FillFails)
		}
	}
}

func TestFailedWriteThrough(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		f := newFaulty(t, large.with(policy, "lru"))
		f.Write(t, 0, backstoretest.Pattern(16*page, 1))
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		f.Read(t, 0, 16*page)
		f.faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium, Done: 3 * page, Times: 1})
		op := backstore.Op{Kind: backstore.Write, FUA: true, Off: 2*page + sector, Data: backstoretest.Pattern(9*page, 2)}
		if err := f.Do(op); !errors.Is(err, errMedium) {
			t.Fatalf("%v: a write that failed below ended with %v", policy, err)
		}
		f.same(t)
		f.Must(t, op)
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		f.same(t)
	}
}

func TestFailedZeroes(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		for _, kind := range []backstore.Kind{backstore.WriteZeroes, backstore.Discard} {
			f := newFaulty(t, large.with(policy, "lru"))
			data := backstoretest.Pattern(16*page, 1)
			f.Write(t, 0, data)
			f.faults.SetRules(errstore.Rule{Kinds: []backstore.Kind{kind}, Err: errMedium})
			op := backstore.Op{Kind: kind, Off: 2 * page, Len: 4 * page}
			if err := f.Do(op); !errors.Is(err, errMedium) {
				t.Fatalf("%v: %v that failed below ended with %v", policy, kind, err)
			}
			if got := f.Read(t, 0, 16*page); !bytes.Equal(got, data) {
				t.Fatalf("%v: a failed %v has changed data", policy, kind)
			}
			f.faults.SetRules()
			f.Must(t, op)
			clear(data[2*page : 6*page])
			if got := f.Read(t, 0, 16*page); !bytes.Equal(got, data) {
				t.Fatalf("%v: wrong data after %v", policy, kind)
			}
		}
	}
}

// Dirty data outlast the errors of the store below.
func TestFailedFlush(t *testing.T) {
	f := newFaulty(t, large.with(Back, "lru"))
	data := backstoretest.Pattern(40*page, 3)
	f.Write(t, page, data)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Off: 9 * page, Len: page, Err: errMedium})
	for range 3 {
		if err := f.Do(backstore.Op{Kind: backstore.Flush}); !errors.Is(err, errMedium) {
			t.Fatalf("a flush that failed below ended with %v", err)
		}
	}
	if f.cache.Stats().DirtyBytes == 0 {
		t.Fatal("what could not be written is not dirty any more")
	}
	f.faults.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Err: errMedium, Times: 1})
	if err := f.Do(backstore.Op{Kind: backstore.Flush}); !errors.Is(err, errMedium) {
		t.Fatalf("a flush of the store below failed, that of the volume ended with %v", err)
	}
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	f.same(t)
	if got := f.Read(t, page, len(data)); !bytes.Equal(got, data) || f.cache.Stats().DirtyBytes != 0 {
		t.Fatal("data were lost, or are dirty still")
	}
}

// When background writing fails it is heard of once, writes go through, and all
// is well again when the store is.
func TestFailedBackgroundWriting(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age, s.volume.Retry, s.volume.DirtyLimit = time.Millisecond, time.Millisecond, 64<<10
	f := newFaulty(t, s)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium})
	data := backstoretest.Pattern(15*page, 4)
	f.Write(t, 0, data)
	eventually.Holds(t, "the error was reported", func() bool { return f.heard.Load() == 1 })
	eventually.Holds(t, "writing was tried again", func() bool { return f.cache.Stats().FlushErrors > 3 })
	op := backstore.Op{Kind: backstore.Write, Off: 32 * page, Data: backstoretest.Pattern(20*page, 5)}
	if err := f.Do(op); !errors.Is(err, errMedium) {
		t.Fatalf("a write while the store fails ended with %v", err)
	}
	if got := f.Read(t, 0, len(data)); !bytes.Equal(got, data) {
		t.Fatal("dirty data were lost")
	}
	f.faults.SetRules()
	eventually.Holds(t, "all was written", func() bool { return f.cache.Stats().DirtyBytes == 0 })
	f.same(t)
	if n := f.heard.Load(); n != 1 {
		t.Fatalf("the error was reported %d times", n)
	}
}

// What cannot be written keeps nothing else from being written, be it in the same
// write; that is heard of as ever.
func TestBadSector(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age, s.volume.Retry = time.Millisecond, time.Millisecond
	f := newFaulty(t, s)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Off: large64, Len: sector, Err: errMedium})
	data := backstoretest.Pattern(backstoretest.Size, 4)
	f.Write(t, 0, data)
	eventually.Holds(t, "all but one block was written", func() bool { return f.cache.Stats().DirtyBytes == large64 })
	eventually.Finds(t, "reports of the error", 1, func() int { return int(f.heard.Load()) })
	f.faults.SetRules()
	eventually.Holds(t, "all was written", func() bool { return f.cache.Stats().DirtyBytes == 0 })
	f.same(t)
}

// While there is nothing but damaged data, the flusher looks less and less often.
func TestHopelessLooks(t *testing.T) {
	var f flusher
	for i := range 12 {
		if found, want := f.look(true), min(unready<<i, maxHopeless); found != want {
			t.Errorf("look %d after %v, expected %v", i, found, want)
		}
	}
	if found := f.look(false); found != unready {
		t.Errorf("a look after %v, expected %v", found, unready)
	}
}

// Close does not lose data either: it fails, and can be called again.
func TestFailedClose(t *testing.T) {
	medium := newMem(t, false)
	faults := errstore.Wrap(medium, errstore.Rule{Kinds: writes, Err: errMedium})
	volume, c := large.with(Back, "lru").wrap(t, faults)
	loop := backstoretest.NewLoop(t, false)
	lane, err := volume.Lane(loop)
	if err != nil {
		t.Fatal(err)
	}
	data := backstoretest.Pattern(5*page, 6)
	client := backstoretest.Client{Loop: loop, Lane: lane}
	client.Write(t, 3*page, data)
	backstoretest.On(loop, lane.Close)
	if err := volume.Close(); !errors.Is(err, errMedium) {
		t.Fatalf("close with dirty data that cannot be written: %v", err)
	}
	if err := c.Close(); err == nil {
		t.Fatal("the cache was closed under an open volume")
	}
	faults.SetRules()
	if err := volume.Close(); err != nil {
		t.Fatal(err)
	}
	if got := medium.CrashClone(1).Bytes()[3*page:]; !bytes.Equal(got[:len(data)], data) {
		t.Fatal("the data did not reach stable media")
	}
}

// One fill serves all who want the same; a write waits for it.
func TestSingleFlight(t *testing.T) {
	f := newFaulty(t, large.with(Through, "lru"))
	old := f.behind(t)
	other := backstoretest.NewClient(t, f.volume, backstoretest.NewLoop(t, false))
	f.faults.SetRules(errstore.Rule{Kinds: reads, Hold: true})
	var ops [4]backstore.Op
	var done [4]<-chan struct{}
	for i := range ops {
		ops[i] = backstore.Op{Kind: backstore.Read, Off: 4 * page, Data: backstoretest.Buffer(page)}
		done[i] = []*backstoretest.Client{f.Client, other}[i%2].Go(&ops[i])
	}
	eventually.Holds(t, "all wait", func() bool { return f.faults.Held() == 1 && f.cache.Stats().Waits == 3 })
	write := backstore.Op{Kind: backstore.Write, Off: 4 * page, Data: backstoretest.Pattern(page, 8)}
	written := other.Go(&write)
	eventually.Holds(t, "the write waits", func() bool { return f.cache.Stats().Waits == 4 })
	f.faults.Release(-1)
	for i := range ops {
		<-done[i]
		if ops[i].Err != nil || !bytes.Equal(ops[i].Data, old) && !bytes.Equal(ops[i].Data, write.Data) {
			t.Errorf("reader %d: error %v, or wrong data", i, ops[i].Err)
		}
	}
	<-written
	f.faults.SetRules()
	if write.Err != nil || !bytes.Equal(f.Read(t, 4*page, page), write.Data) {
		t.Fatalf("after the write, error %v, another version is read", write.Err)
	}
}

// behind writes a page behind the cache's back.
func (f *faulty) behind(t *testing.T) []byte {
	t.Helper()
	data := backstoretest.Pattern(page, 7)
	c := backstoretest.NewClient(t, f.medium, backstoretest.NewLoop(t, false))
	c.Write(t, 4*page, data)
	return data
}

// A write beyond the dirty limit waits, and ends when there is room.
func TestDirtyLimit(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.DirtyLimit = 16 * page
	f := newFaulty(t, s)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Hold: true})
	var ops [32]backstore.Op
	var done [32]<-chan struct{}
	for i := range ops {
		ops[i] = backstore.Op{Kind: backstore.Write, Off: int64(i) * 2 * page, Data: backstoretest.Pattern(2*page, uint64(i))}
		done[i] = f.Go(&ops[i])
	}
	eventually.Holds(t, "writes wait", func() bool { return f.cache.room.waiting.Load() == 24 && f.faults.Held() > 0 })
	if dirty := f.cache.Stats().DirtyBytes; dirty != 16*page {
		t.Fatalf("%d bytes are dirty, expected the limit of %d", dirty, 16*page)
	}
	f.faults.SetRules()
	f.faults.Release(-1)
	for i := range ops {
		<-done[i]
		if ops[i].Err != nil {
			t.Fatal(ops[i].Err)
		}
	}
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	f.same(t)
}

// A volume whose store could not be closed has left the cache: to close it again
// is about the store alone, also when another volume has its number.
func TestCloseAgain(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		s := large.with(policy, "lru")
		config := s.config()
		config.LUs = 1
		c := newCache(t, config)
		first, err := c.Wrap(errstore.RefuseClose(newMem(t, false), 1, errMedium), s.volume)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); !errors.Is(err, errMedium) {
			t.Fatalf("%v: found %v, expected %v", policy, err, errMedium)
		}
		s.volume.ID++
		second, err := c.Wrap(newMem(t, false), s.volume)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
		client := backstoretest.NewClient(t, second, backstoretest.NewLoop(t, false))
		data := backstoretest.Pattern(page, 1)
		client.Write(t, 0, data)
		client.Read(t, 0, page)
		if _, err := first.Lane(client.Loop); err == nil {
			t.Errorf("%v: a lane into a volume that has left", policy)
		}
		closed := make(chan error, 1)
		go func() { closed <- first.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("%v: %v", policy, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%v: it is not closed", policy)
		}
		if _, err := c.Wrap(newMem(t, false), VolumeConfig{ID: 77}); err == nil {
			t.Errorf("%v: a third volume got the number of the second", policy)
		}
		hits := c.Stats().Hits
		if got := client.Read(t, 0, page); !bytes.Equal(got, data) || c.Stats().Hits == hits {
			t.Errorf("%v: what was cached of the second volume is gone", policy)
		}
	}
}
