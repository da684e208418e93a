package tier

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
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
		eventually(t, "nothing is dirty", func() bool { return one.volume.(Changeable).Settled() && one.volume.(backstore.WriteBack).Dirty() == 0 })
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
	eventually(t, "nothing is dirty", func() bool { return f.volume.(Changeable).Settled() && f.dirty() == 0 })
	if data := put(2); !there(data) {
		t.Error("a write did not go through")
	}
	change(Back)
	if data := put(3); there(data) {
		t.Error("a write went through")
	}
	change(Through)
	eventually(t, "nothing is dirty", func() bool { return f.dirty() == 0 })
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
