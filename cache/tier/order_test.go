package tier

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
)

// A flush waits for what the flusher has under way.
func TestFlushWaits(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age = time.Millisecond
	f := newFaulty(t, s)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Hold: true})
	f.Write(t, 3*page, backstoretest.Pattern(page, 1))
	eventually.Holds(t, "the flusher writes", func() bool { return f.faults.Held() == 1 })
	flush := backstore.Op{Kind: backstore.Flush}
	done := f.Go(&flush)
	eventually.Holds(t, "the flush waits", func() bool { return f.cache.Stats().Waits == 1 })
	select {
	case <-done:
		t.Fatal("the flush has ended before the data were written")
	default:
	}
	f.faults.SetRules()
	f.faults.Release(-1)
	<-done
	if flush.Err != nil || f.medium.Unstable() != 0 {
		t.Fatalf("after the flush, error %v, %d sectors are not stable", flush.Err, f.medium.Unstable())
	}
	f.same(t)
}

// A read waits for a write under way, also one over dirty data, and sees it.
func TestReadWaitsForWrite(t *testing.T) {
	f := newFaulty(t, large.with(Back, "lru"))
	f.Write(t, 3*page, backstoretest.Pattern(page, 1))
	f.faults.SetRules(errstore.Rule{Kinds: writes, Hold: true})
	write := backstore.Op{Kind: backstore.Write, FUA: true, Off: 3 * page, Data: backstoretest.Pattern(page, 2)}
	written := f.Go(&write)
	eventually.Holds(t, "the write is under way", func() bool { return f.faults.Held() == 1 })
	read := backstore.Op{Kind: backstore.Read, Off: 3 * page, Data: backstoretest.Buffer(page)}
	done := f.Go(&read)
	eventually.Holds(t, "the read waits", func() bool { return f.cache.Stats().Waits == 1 })
	f.faults.SetRules()
	f.faults.Release(-1)
	<-written
	<-done
	if read.Err != nil || !bytes.Equal(read.Data, write.Data) {
		t.Fatalf("error %v, or the data of before the write", read.Err)
	}
}

// A read larger than the cache that begins within a page: most of it passes the
// cache by, to memory that is not page-aligned.
func TestLargeReadWithinPages(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		volume, _ := tiny.with(policy, "lru").wrap(t, newMem(t, true))
		t.Cleanup(func() {
			if err := volume.Close(); err != nil {
				t.Error(err)
			}
		})
		c := backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))
		want := backstoretest.Pattern(backstoretest.Size, 3)
		c.Write(t, 0, want)
		for range 2 {
			if got := c.Read(t, sector, backstoretest.Size-2*sector); !bytes.Equal(got, want[sector:backstoretest.Size-sector]) {
				t.Fatalf("%v: wrong data", policy)
			}
		}
	}
}

// A sequential reader finds in the cache what was read ahead for it.
func TestReadAhead(t *testing.T) {
	s := large.with(Through, "lru")
	s.volume.ReadAhead = 128 << 10
	f := newFaulty(t, s)
	data := make([]byte, 0, backstoretest.Size)
	for off := int64(0); off < backstoretest.Size; off += 2 * page {
		data = append(data, f.Read(t, off, 2*page)...)
	}
	if stats := f.cache.Stats(); stats.ReadAhead < backstoretest.Size/2 || stats.Hits < 32 || !bytes.Equal(data, f.medium.Bytes()) {
		t.Fatalf("%d bytes were read ahead, %d hits, or wrong data", stats.ReadAhead, stats.Hits)
	}
}

// FussyCache lets in what is popular and not a scan.
func TestFussyPromotes(t *testing.T) {
	f := newFaulty(t, large.with(Through, fussy))
	for off := int64(0); off < backstoretest.Size; off += 64 << 10 {
		f.Read(t, off, page)
	}
	if used := f.cache.Stats().Used; used != 0 {
		t.Fatalf("a scan has taken %d blocks", used)
	}
	for range 20 {
		f.Read(t, 64<<10, page)
	}
	if stats := f.cache.Stats(); stats.Used == 0 || stats.Hits == 0 {
		t.Fatalf("what is read often is not in the cache: %+v", stats)
	}
}

func TestRefusals(t *testing.T) {
	c := newCache(t, large.config())
	first, err := c.Wrap(newRAM(t), VolumeConfig{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]VolumeConfig{
		"an identity that is taken": {ID: 1},
		"an unknown policy":         {Policy: 3},
		"an unknown admission":      {Admission: "all"},
		"a minimum beyond all":      {Min: 1 << 40},
	} {
		if _, err := c.Wrap(newRAM(t), config); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			t.Log(err)
		}
	}
	volumes := []backstore.Store{first}
	for id := uint64(2); ; id++ {
		v, err := c.Wrap(newRAM(t), VolumeConfig{ID: id})
		if err != nil {
			t.Log(err)
			break
		}
		volumes = append(volumes, v)
	}
	if len(volumes) != 3 {
		t.Errorf("%d volumes are open, expected the 3 of the configuration", len(volumes))
	}
	for _, v := range volumes {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	config := large.config()
	config.Bytes = 1
	if _, err := New(config); err == nil {
		t.Error("a cache of no block was accepted")
	}
}

// A write through that covers pages in part leaves in the cache what it covers
// wholly, and joins what is there already.
func TestWriteThroughStays(t *testing.T) {
	for name, lower := range map[string]bool{"now": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			volume, c := large.with(Through, "lru").wrap(t, newMem(t, lower))
			t.Cleanup(func() {
				if err := volume.Close(); err != nil {
					t.Error(err)
				}
			})
			client := backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))
			data := backstoretest.Pattern(2*page, 1)
			client.Write(t, 2*page-sector, data) // a sector, a page, and the rest of a page
			hit := func(off int64, n int, want []byte, hits uint64) {
				t.Helper()
				before := c.Stats().Hits
				if got := client.Read(t, off, n); !bytes.Equal(got, want) {
					t.Fatalf("wrong data at %d", off)
				}
				if got := c.Stats().Hits - before; got != hits {
					t.Fatalf("%d hits at %d, expected %d", got, off, hits)
				}
			}
			hit(2*page, page, data[sector:][:page], 1)
			hit(3*page, page-sector, data[sector+page:], 0) // is there from now on
			client.Write(t, 3*page+sector, data[:sector])
			copy(data[page+2*sector:], data[:sector])
			hit(3*page, page-sector, data[sector+page:], 1)
		})
	}
}

// Without parameters of its own a volume tunes its admission by what is read
// first, in every partition.
func TestFussyTunes(t *testing.T) {
	s := large
	s.volume.Admission = fussy
	f := newFaulty(t, s)
	state := func() FussyStats { return f.cache.Snapshot().Volumes[f.volume].Fussy }
	untuned := state()
	for i := range 5000 { // enough for both partitions to warm up, too few for LRU mode to end by itself
		f.Read(t, int64(i*page)%backstoretest.Size, sector)
	}
	eventually.Holds(t, "admission is tuned", func() bool { return state().Warming == 0 })
	if tuned := state(); untuned.Warming != untuned.Partitions || untuned.LRU != 0 || tuned.LRU != 0 || tuned.Partitions != untuned.Partitions || tuned.Params.FreqThreshold == 0 {
		t.Errorf("%+v became %+v", untuned, tuned)
	}
}
