package tier

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/eventually"
)

// TestChangeUnderLoad: how a volume is written changes all the time, and everything
// is read as it was written. When it writes back no more, the store has it all.
func TestChangeUnderLoad(t *testing.T) {
	t.Logf("-seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 5))
	for _, s := range []setup{tiny.with(Back, "lru"), large.on(2).with(Back, fussy)} {
		s.volume.Age = time.Hour
		one := newSubject(t, "changed", s, true)
		ended, changed := make(chan struct{}), make(chan int)
		go func(random *rand.Rand) {
			rounds := 0
			for ; ; rounds++ {
				select {
				case <-ended:
					changed <- rounds
					return
				default:
				}
				err := one.volume.(Changeable).Change(Changes{
					Policy: []Policy{Back, Through}[rounds%2], Min: int64(random.IntN(2)) * int64(s.block), Max: int64(random.IntN(3)) * 4 * int64(s.block),
					Age: time.Duration(1+random.IntN(3)) * time.Millisecond, DirtyLimit: int64(random.IntN(4)) * page,
				})
				if err != nil {
					t.Error(err)
				}
			}
		}(rand.New(rand.NewPCG(random.Uint64(), 1)))
		model := make([]byte, span)
		one.client.Must(t, backstore.Op{Kind: backstore.WriteZeroes, Len: span})
		for range 600 * *effort {
			first := random.Int64N(span / sector)
			n := sector * (1 + random.Int64N(min(span/sector-first, 60)))
			op := backstore.Op{Kind: []backstore.Kind{backstore.Read, backstore.Write, backstore.Write, backstore.Discard}[random.IntN(4)], Off: first * sector, Len: n}
			switch op.Kind {
			case backstore.Read:
				op.Data = backstoretest.Buffer(int(n))
			case backstore.Write:
				op.Data = backstoretest.Pattern(int(n), random.Uint64())
			}
			apply(model, &op)
			if err := one.client.Run(&op); err != nil || op.Kind == backstore.Read && !bytes.Equal(op.Data, model[op.Off:op.Off+n]) {
				t.Fatalf("%v of %d bytes at %d: %v, or the data differ", op.Kind, n, op.Off, err)
			}
		}
		close(ended)
		if rounds := <-changed; rounds < 4 {
			t.Errorf("found %d changes during the load: the test proves nothing", rounds)
		}
		if err := one.volume.(Changeable).Change(Changes{Policy: Through}); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "nothing is dirty", func() bool { return one.volume.(Changeable).Settled() && one.volume.(backstore.WriteBack).Dirty() == 0 })
		if !bytes.Equal(one.lower.Bytes(), model) {
			t.Error("the store below has not what was written")
		}
	}
}

// TestChangeThrough: what was dirty is written at once, what comes later at once
// too, and after a change back it may be dirty again.
func TestChangeThrough(t *testing.T) {
	f, _ := newRigid(t)
	put := func(seed uint64) []byte {
		data := backstoretest.Pattern(3*page+sector, seed)
		f.Write(t, sector, data)
		return data
	}
	there := func(data []byte) bool { return bytes.Equal(f.medium.Bytes()[sector:sector+len(data)], data) }
	change := func(p Policy) {
		t.Helper()
		if err := f.volume.(Changeable).Change(Changes{Policy: p, Age: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if data := put(1); there(data) {
		t.Error("found dirty data in the store")
	}
	change(Through)
	eventually.Holds(t, "nothing is dirty", func() bool { return f.volume.(Changeable).Settled() && f.dirty() == 0 })
	if data := put(2); !there(data) {
		t.Error("a write did not go through")
	}
	change(Back)
	if data := put(3); there(data) {
		t.Error("a write went through")
	}
	change(Through)
	eventually.Holds(t, "nothing is dirty", func() bool { return f.dirty() == 0 })
	f.same(t)
}

// TestChangeThroughParts: a write that goes through makes nothing dirty, also where it
// covers a sub-block only in part; what of that was dirty before stays so. Else a change
// from back to through would not come to an end under such writes.
func TestChangeThroughParts(t *testing.T) {
	f := newFaulty(t, large.with(Back, "lru"))
	dirty := func(pages int64) {
		t.Helper()
		if n := f.cache.Stats().DirtyBytes; n != uint64(pages)*page {
			t.Errorf("%d bytes are dirty, expected %d pages", n, pages)
		}
	}
	part := func(at int64) { // FUA goes the way of all writes after a change to through
		f.Must(t, backstore.Op{Kind: backstore.Write, Off: at*page + sector, Data: backstoretest.Pattern(2*sector, uint64(at)), FUA: true})
	}
	f.Write(t, page, backstoretest.Pattern(page, 9))
	part(0) // absent
	f.Read(t, 2*page, page)
	part(2) // clean
	dirty(1)
	part(1) // dirty before
	dirty(1)
	want := f.Read(t, 0, 4*page)
	if err := f.volume.(Changeable).Change(Changes{Policy: Through}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "nothing is dirty", func() bool { return f.cache.Stats().DirtyBytes == 0 })
	f.Write(t, page+sector, want[page+sector:page+3*sector])
	dirty(0)
	if !bytes.Equal(f.medium.Bytes()[:4*page], want) {
		t.Error("the store has something else")
	}
	f.same(t)
}

// TestChangeRefused: what cannot be leaves all as it was.
func TestChangeRefused(t *testing.T) {
	v, c := large.with(Through, "lru").wrap(t, newMem(t, false))
	defer v.Close()
	change := v.(Changeable)
	if change.MayWriteBack() {
		t.Error("found that a volume without a flusher may write back")
	}
	if err := change.Change(Changes{Policy: Back}); err == nil || !strings.Contains(err.Error(), "found write policy back, expected through") {
		t.Errorf("found %v", err)
	}
	for _, wrong := range []Changes{{Min: 1 << 40}, {Min: 64 << 20, Max: 1 << 20}} {
		if err := change.Change(wrong); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
	if err := change.Change(Changes{Min: c.config.Bytes, Max: c.config.Bytes}); err != nil {
		t.Error(err)
	}
}

// TestRewrappedVolumeFindsItsCleanData: a volume that is wrapped again finds what was clean, if it was to be kept
// and nobody else has written to the store.
func TestRewrappedVolumeFindsItsCleanData(t *testing.T) {
	loop := backstoretest.NewLoop(t, false)
	for _, test := range []struct {
		name               string
		keep, foreign, hit bool
	}{
		{name: "kept", keep: true, hit: true},
		{name: "not kept"},
		{name: "written by others", keep: true, foreign: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, path := newCache(t, large.config()), filepath.Join(t.TempDir(), "v")
			read := func(then func(Changeable)) bool {
				store, err := backstore.OpenFile(backstore.FileConfig{Path: path, Size: backstoretest.Size})
				if err != nil {
					t.Fatal(err)
				}
				v, err := c.Wrap(store, VolumeConfig{ID: 7, Min: c.config.Bytes / 2})
				if err != nil {
					t.Fatal(err)
				}
				lane, err := v.Lane(loop)
				if err != nil {
					t.Fatal(err)
				}
				op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
				if err := (&backstoretest.Client{Loop: loop, Lane: lane}).Run(&op); err != nil {
					t.Error(err)
				}
				then(v.(Changeable))
				backstoretest.On(loop, lane.Close)
				if err := v.Close(); err != nil || !v.(Changeable).Left() {
					t.Errorf("found %v, expected that the volume has left", err)
				}
				return op.Hit
			}
			if read(func(v Changeable) {
				if test.keep {
					v.Keep()
				}
			}) {
				t.Error("found in the cache what nobody had read")
			}
			if test.foreign {
				if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if hit := read(func(Changeable) {}); hit != test.hit {
				t.Errorf("found what was cached before: %t, expected %t", hit, test.hit)
			}
			for i := range c.blocks.Parts {
				if err := c.blocks.Parts[i].SetShare(1, c.blocks.Parts[i].Slots(), 0); err != nil {
					t.Errorf("found that a volume which has left keeps its share: %v", err)
				}
			}
		})
	}
}
