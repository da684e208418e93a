package tier

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

const (
	sector = memstore.Sector
	// span is how much of a store the random operations work on, in bytes:
	// little, so that they meet, and not a multiple of a page.
	span = 96<<10 + sector
)

// variants are caches under which the same operations must have the same results.
var variants = func() map[string]setup {
	all := map[string]setup{}
	for size, s := range map[string]setup{"tiny": tiny, "large": large} {
		for i, policy := range []Policy{Through, Back} {
			for j, admission := range []string{"lru", fussy} {
				nodes := 1 << ((i + j) % 3)
				all[fmt.Sprintf("%s/%v/%s/%d", size, policy, admission, nodes)] = s.on(nodes).with(policy, admission)
			}
		}
	}
	return all
}()

// subject is a volume in a variant, and what is below.
type subject struct {
	name   string
	client *backstoretest.Client
	lower  *memstore.Store
	cache  *Cache
	volume backstore.Store
	idle   func() bool
}

func newSubject(t testing.TB, name string, s setup, async bool) subject {
	lower, err := memstore.New(memstore.Config{Size: span, Async: async})
	if err != nil {
		t.Fatal(err)
	}
	return newSubjectOver(t, name, s, lower, lower, func() bool { return true })
}

// newSubjectOver is newSubject over a store whose bytes are those of lower. Loops
// are stopped when it is idle.
func newSubjectOver(t testing.TB, name string, s setup, lower *memstore.Store, store backstore.Store, idle func() bool) subject {
	s.volume.ReadAhead = 32 << 10
	c := newCache(t, s.config())
	v, err := c.Wrap(store, s.volume)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	one := subject{name: name, lower: lower, cache: c, volume: v, idle: idle}
	one.client = newLane(t, &one)
	return one
}

// drawOp returns a random operation on whole sectors.
func drawOp(t *rapid.T) backstore.Op {
	first := rapid.Int64Range(0, span/sector-1).Draw(t, "first")
	n := sector * rapid.Int64Range(1, min(span/sector-first, 130)).Draw(t, "count")
	op := backstore.Op{
		Kind: rapid.SampledFrom([]backstore.Kind{
			backstore.Read, backstore.Read, backstore.Read, backstore.Write, backstore.Write, backstore.Write,
			backstore.Flush, backstore.Discard, backstore.WriteZeroes, backstore.Map,
		}).Draw(t, "kind"),
		FUA: rapid.IntRange(0, 5).Draw(t, "fua") == 5, Off: first * sector, Len: n,
	}
	switch op.Kind {
	case backstore.Read:
		op.Data = backstoretest.Buffer(int(n))
	case backstore.Write:
		op.Data = backstoretest.Pattern(int(n), rapid.Uint64().Draw(t, "data"))
	}
	return op
}

// apply does op to the model.
func apply(model []byte, op *backstore.Op) {
	switch op.Kind {
	case backstore.Write:
		copy(model[op.Off:], op.Data)
	case backstore.Discard, backstore.WriteZeroes:
		clear(model[op.Off : op.Off+op.Len])
	}
}

// verify compares what op has returned with the model.
func (s *subject) verify(t *rapid.T, model []byte, op *backstore.Op) {
	switch {
	case op.Err != nil:
		t.Fatalf("%s: %v of %d bytes at %d: %v", s.name, op.Kind, op.Length(), op.Off, op.Err)
	case op.Kind == backstore.Read && !bytes.Equal(op.Data, model[op.Off:op.Off+int64(len(op.Data))]):
		t.Fatalf("%s: a read of %d bytes at %d differs from the model", s.name, len(op.Data), op.Off)
	case op.Kind == backstore.Map && !op.Mapped && !bytes.Equal(model[op.Off:op.Off+op.Len], make([]byte, op.Len)):
		t.Fatalf("%s: %d bytes at %d are not mapped, yet they hold data", s.name, op.Len, op.Off)
	}
}

// The same operations end in the same image whatever the cache is like, and all
// that is read on the way is the same.
func TestMetamorphic(t *testing.T) {
	var all []subject
	for name, s := range variants {
		all = append(all, newSubject(t, name, s, len(all)%2 == 0))
	}
	rapid.Check(t, func(rt *rapid.T) {
		model := make([]byte, span)
		for i := range all {
			all[i].client.Must(rt, backstore.Op{Kind: backstore.WriteZeroes, Len: span})
		}
		for range rapid.IntRange(1, 25).Draw(rt, "ops") {
			op := drawOp(rt)
			apply(model, &op)
			for i := range all {
				own := op
				_ = all[i].client.Run(&own) // verify looks at own.Err
				all[i].verify(rt, model, &own)
			}
		}
		for i := range all {
			s := &all[i]
			if !bytes.Equal(s.client.Read(rt, 0, span), model) {
				rt.Fatalf("%s: the image differs from the model", s.name)
			}
			s.client.Must(rt, backstore.Op{Kind: backstore.Flush})
			if !bytes.Equal(s.lower.Bytes(), model) {
				rt.Fatalf("%s: the image below differs from the model", s.name)
			}
			if err := s.cache.Check(); err != nil {
				rt.Fatalf("%s: %v", s.name, err)
			}
		}
	})
}

// owner is one of several users of a volume, who owns every n-th sector and knows
// what is in those.
type owner struct {
	client *backstoretest.Client
	id, n  int64
	model  []byte
	random *rand.Rand
}

// step does something and returns what is wrong.
func (o *owner) step() error {
	at := o.random.Int64N(span/sector/o.n)*o.n + o.id
	op := backstore.Op{Off: at * sector, Len: sector, FUA: o.random.IntN(10) == 0}
	switch o.random.IntN(12) {
	default:
		return o.read(at)
	case 0:
		op.Kind = backstore.WriteZeroes
	case 1:
		op.Kind = backstore.Discard
	case 2:
		op.Kind = backstore.Flush
	case 3, 4, 5, 6, 7:
		op.Kind, op.Data = backstore.Write, backstoretest.Pattern(sector, o.random.Uint64())
	}
	apply(o.model, &op)
	return o.client.Do(op)
}

// read reads from the given sector on, with those of others in between.
func (o *owner) read(at int64) error {
	n := 1 + o.random.Int64N(min(span/sector-at, 100))
	op := backstore.Op{Kind: backstore.Read, Off: at * sector, Data: backstoretest.Buffer(int(n * sector))}
	if err := o.client.Run(&op); err != nil {
		return err
	}
	for i := int64(0); i < n; i += o.n {
		if from := (at + i) * sector; !bytes.Equal(op.Data[i*sector:(i+1)*sector], o.model[from:from+sector]) {
			return fmt.Errorf("user %d: sector %d is not what was written", o.id, at+i)
		}
	}
	return nil
}

// Several event threads write to sectors of the same pages; each finds its own
// as it left them.
func TestConcurrentLanes(t *testing.T) {
	const users = 4
	for name, s := range variants {
		t.Run(name, func(t *testing.T) {
			s.volume.DirtyLimit, s.volume.Age = 48<<10, 1 // the flusher is busy
			lower, err := memstore.New(memstore.Config{Size: span})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("-seed %d", *seed)
			slow := &jitter{Store: lower}
			first := newSubjectOver(t, name, s, lower, slow, slow.idle)
			first.client.Must(t, backstore.Op{Kind: backstore.WriteZeroes, Len: span})
			var group sync.WaitGroup
			for id := range int64(users) {
				o := owner{newLane(t, &first), id, users, make([]byte, span), rand.New(rand.NewPCG(*seed, uint64(id)))}
				group.Go(func() {
					for range 150 * *effort {
						if err := o.step(); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// newLane opens another lane of s's volume on a loop of its own.
func newLane(t testing.TB, s *subject) *backstoretest.Client {
	loop := backstoretest.NewLoop(t, false)
	t.Cleanup(func() { eventually.Holds(t, "what was being read ahead has ended", s.idle) })
	return backstoretest.NewClient(t, s.volume, loop)
}
