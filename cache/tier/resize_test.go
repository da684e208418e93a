package tier

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/cache/segment"
)

// rigid is a store whose Resize fails when it is told to.
type rigid struct {
	*errstore.Store
	err error
}

func (r *rigid) Resize(size int64) error {
	if r.err != nil {
		return r.err
	}
	return r.Store.Resize(size)
}

// newRigid is a volume that writes nothing by itself.
func newRigid(t *testing.T) (*faulty, *rigid) {
	s := large.with(Back, "lru")
	s.volume.Age = time.Hour
	f := &faulty{medium: newMem(t, false)}
	f.faults = errstore.Wrap(f.medium)
	below := &rigid{Store: f.faults}
	f.volume, f.cache = s.wrap(t, below)
	t.Cleanup(func() {
		f.faults.SetRules()
		if err := f.volume.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Client = backstoretest.NewClient(t, f.volume, backstoretest.NewLoop(t, false))
	return f, below
}

func (f *faulty) dirty() int64 { return f.volume.(backstore.WriteBack).Dirty() }

// What is dirty is flushed first, but for what is to go.
func TestResizeFlushes(t *testing.T) {
	f, _ := newRigid(t)
	const cut = 5*large64 + 3*page + sector
	data := backstoretest.Pattern(backstoretest.Size, 1)
	f.Write(t, 0, data)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Off: cut, Err: errMedium}) // nothing is written there
	if err := backstore.Resize(f.volume, cut); err != nil {
		t.Fatal(err)
	}
	const flushed = 5 * large64
	if !bytes.Equal(f.medium.Bytes()[:flushed], data[:flushed]) {
		t.Error("what lies before the end was not written first")
	}
	if n := f.dirty(); n > cut-flushed+page {
		t.Errorf("%d dirty bytes are left, expected those of the last block at most", n)
	}
	f.faults.SetRules()
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	if f.dirty() != 0 || !bytes.Equal(f.medium.Bytes(), data[:cut]) {
		t.Errorf("%d dirty bytes after a flush; or the data differ", f.dirty())
	}
}

const large64 = 64 << 10 // large's blocks

// If what is dirty cannot be written, or the store below cannot be resized,
// nothing has happened.
func TestResizeFails(t *testing.T) {
	for name, fail := range map[string]func(*faulty, *rigid){
		"flush":  func(f *faulty, _ *rigid) { f.faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium}) },
		"resize": func(_ *faulty, r *rigid) { r.err = errMedium },
	} {
		f, below := newRigid(t)
		data := backstoretest.Pattern(backstoretest.Size, 1)
		f.Write(t, 0, data)
		fail(f, below)
		for _, size := range []int64{backstoretest.Size / 2, 5*large64 + page + sector} {
			if err := backstore.Resize(f.volume, size); !errors.Is(err, errMedium) {
				t.Fatalf("%s: error %v", name, err)
			}
			if f.volume.Info().Size != backstoretest.Size || !bytes.Equal(f.Read(t, 0, len(data)), data) {
				t.Fatalf("%s: the volume has %d bytes, or others than were written", name, f.volume.Info().Size)
			}
		}
		f.faults.SetRules()
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		f.same(t)
	}
}

func TestResizeUnsupported(t *testing.T) {
	type fixed struct{ backstore.Store } // hides Resize
	w, _ := large.with(Back, "lru").wrap(t, fixed{newRAM(t)})
	defer w.Close()
	if err := backstore.Resize(w, page); !errors.Is(err, backstore.ErrUnsupported) {
		t.Errorf("error %v, expected ErrUnsupported", err)
	}
}

// Whoever flushes while the volume shrinks waits, and does not fail.
func TestFlushDuringResize(t *testing.T) {
	f, _ := newRigid(t)
	other := backstoretest.NewClient(t, f.volume, backstoretest.NewLoop(t, false))
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := other.Do(backstore.Op{Kind: backstore.Flush}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range 30 {
		f.Write(t, 0, backstoretest.Pattern(backstoretest.Size, uint64(i)))
		for _, size := range []int64{int64(i+1) * 3 * sector, backstoretest.Size} {
			if err := backstore.Resize(f.volume, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	group.Wait()
	f.same(t)
	if n := f.cache.counters.flushErrors.Load(); n != 0 {
		t.Errorf("%d writes failed", n)
	}
}

// What somebody sends from does not change under it when it falls behind the end,
// and is not served again.
func TestResizeUnderLoan(t *testing.T) {
	f, _ := newRigid(t)
	data := backstoretest.Pattern(backstoretest.Size, 1)
	f.Write(t, 0, data)
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	v := f.volume.(*volume)
	key := cache.Key{LU: v.config.LU, Block: 3}
	part := v.cache.blocks.Part(key)
	slot, ok := part.TryRead(key, 0xf)
	if !ok {
		t.Fatal("what was written is not in the cache")
	}
	for _, size := range []int64{2 * large64, backstoretest.Size} {
		if err := backstore.Resize(f.volume, size); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(part.Bytes(slot)[:4*page], data[3*large64:3*large64+4*page]) {
		t.Error("what is being sent has changed")
	}
	blocks.Wake(part.Unpin(slot))
	if !bytes.Equal(f.Read(t, 2*large64, 2*large64), make([]byte, 2*large64)) {
		t.Error("data of before came back")
	}
}

// dying is a store whose Resize is the last that its process does, or what it dies before.
type dying struct {
	backstore.Store
	early bool
}

func (d dying) Resize(size int64) error {
	if d.early {
		runtime.Goexit()
	}
	err := backstore.Resize(d.Store, size)
	if err == nil {
		runtime.Goexit()
	}
	return err
}

// A process that dies when the store is short already leaves nothing that keeps
// the next one from serving it.
func TestCrashInResize(t *testing.T) {
	const cut = 100<<10 + 3*sector
	s := newSite(t)
	p := s.start()
	file, err := backstore.OpenFile(backstore.FileConfig{Path: s.path("a"), Size: siteSize})
	if err != nil {
		t.Fatal(err)
	}
	o := p.use(p.wrapStore(dying{file, false}, config("a", Back)))
	data := backstoretest.Pattern(200<<10, 1)
	o.Write(t, 0, data)
	var group sync.WaitGroup
	group.Go(func() { err = backstore.Resize(o.store, cut) })
	group.Wait()
	if err != nil {
		t.Fatal(err)
	}
	p.crash()

	p = s.start().outcome(segment.Crashed)
	o = p.use(p.wrap(config("a", Back), cut))
	if n := p.cache.room.unowned.Load(); n != 0 {
		t.Errorf("%d dirty bytes of no volume", n)
	}
	if got := o.Read(t, 0, cut); !bytes.Equal(got, data[:cut]) {
		t.Error("what lies before the end is lost")
	}
	if err := backstore.Resize(o.store, siteSize); err != nil {
		t.Fatal(err)
	}
	if got := o.Read(t, cut, siteSize-cut); !bytes.Equal(got, make([]byte, siteSize-cut)) {
		t.Error("what lay behind the end came back")
	}
	p.end()
}

// A store that grows after a process died in cutting it has zeroes behind where it was
// cut; one that was not cut yet has what it had.
func TestCrashInResizeThenGrowth(t *testing.T) {
	const written = 200 << 10
	data := append(backstoretest.Pattern(written, 1), make([]byte, siteSize-written)...)
	for _, test := range []struct {
		early     bool
		cut, size int64
	}{
		{false, 100<<10 + 3*sector, siteSize}, {false, 100 << 10, siteSize}, {false, written - sector, siteSize},
		{false, 100<<10 + 3*sector, 150 << 10}, {true, 100<<10 + 3*sector, siteSize},
	} {
		s, want := newSite(t), bytes.Clone(data)[:test.size]
		p := s.start()
		file, err := backstore.OpenFile(backstore.FileConfig{Path: s.path("a"), Size: siteSize})
		if err != nil {
			t.Fatal(err)
		}
		o := p.use(p.wrapStore(dying{file, test.early}, config("a", Back)))
		o.Write(t, 0, data[:written])
		var group sync.WaitGroup
		group.Go(func() { _ = backstore.Resize(o.store, test.cut) })
		group.Wait()
		p.crash()
		if !test.early {
			clear(want[test.cut:])
		}
		p = s.start()
		o = p.use(p.wrap(config("a", Back), test.size))
		if got := o.Read(t, 0, len(want)); !bytes.Equal(got, want) {
			t.Errorf("%+v: found other data than expected", test)
		}
		p.end()
		if !bytes.Equal(s.file("a"), want) {
			t.Errorf("%+v: other data than expected were written", test)
		}
	}
}

// The same operations and resizes end in the same image whatever the cache is
// like.
func TestResizeModel(t *testing.T) {
	var all []subject
	for name, s := range variants {
		all = append(all, newSubject(t, name, s, len(all)%2 == 0))
	}
	rapid.Check(t, func(rt *rapid.T) {
		model := make([]byte, span)
		for i := range all {
			resizeTo(rt, &all[i], sector) // so that zeroes follow
			all[i].client.Must(rt, backstore.Op{Kind: backstore.WriteZeroes, Len: sector})
			resizeTo(rt, &all[i], span)
		}
		for range rapid.IntRange(1, 9).Draw(rt, "ops") {
			if rapid.IntRange(0, 3).Draw(rt, "resize") == 0 {
				size := sector * rapid.Int64Range(1, span/sector).Draw(rt, "size")
				model = append(model[:min(size, int64(len(model)))], make([]byte, max(0, size-int64(len(model))))...)
				for i := range all {
					resizeTo(rt, &all[i], size)
				}
			}
			op := drawOp(rt)
			inside := op.Kind == backstore.Flush || op.Off+op.Length() <= int64(len(model))
			if inside {
				apply(model, &op)
			}
			for i := range all {
				own := op
				if err := all[i].client.Run(&own); !inside && !errors.Is(err, backstore.ErrOutOfRange) {
					rt.Fatalf("%s: %v of %d bytes at %d, where the end is %d: %v", all[i].name, op.Kind, op.Length(), op.Off, len(model), err)
				} else if inside {
					all[i].verify(rt, model, &own)
				}
			}
		}
		for i := range all {
			s := &all[i]
			if !bytes.Equal(s.client.Read(rt, 0, len(model)), model) {
				rt.Fatalf("%s: the image differs from the model", s.name)
			}
			s.client.Must(rt, backstore.Op{Kind: backstore.Flush})
			if !bytes.Equal(s.lower.Bytes(), model) {
				rt.Fatalf("%s: the image below differs from the model", s.name)
			}
		}
	})
}

func resizeTo(t *rapid.T, s *subject, size int64) {
	if err := backstore.Resize(s.cache.mu.volumes[0], size); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
}
