package cache

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

const subs = 4 // per block in these tests: 16 KiB blocks

// world drives a partition like an integration would, one step at a time, with
// versions instead of data: the store's, the arena's, and those that a reader
// must see.
type world struct {
	t       *rapid.T
	p       *Partition
	store   map[Key]*[subs]int
	want    map[Key]*[subs]int // what was acknowledged last
	arena   [][subs]int
	version int
	under   []func() // steps that end something
	waiting map[*Waiter]func()
	pins    int
	claims  map[uint32]uint64 // sub-blocks that a crash may leave half-written
	ending  map[Key][subs]int // what was acknowledged before that which is ending now
}

func newWorld(t *rapid.T, slots int) *world {
	w := emptyWorld(t, slots)
	var err error
	w.p, err = NewPartition(Config{Slots: slots, BlockSize: subs * 4096, LUs: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// emptyWorld is one without a partition.
func emptyWorld(t *rapid.T, slots int) *world {
	return &world{
		t: t, store: map[Key]*[subs]int{}, want: map[Key]*[subs]int{}, arena: make([][subs]int, slots),
		waiting: map[*Waiter]func(){}, claims: map[uint32]uint64{}, ending: map[Key][subs]int{},
	}
}

func at(m map[Key]*[subs]int, k Key) *[subs]int {
	if m[k] == nil {
		m[k] = new([subs]int)
	}
	return m[k]
}

func each(mask uint64, f func(i int)) {
	for i := range subs {
		if mask>>i&1 != 0 {
			f(i)
		}
	}
}

func (w *world) later(f func()) { w.under = append(w.under, f) }

// step ends something that is under way.
func (w *world) step() {
	if len(w.under) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.under)-1).Draw(w.t, "end")
	f := w.under[i]
	w.under = append(w.under[:i], w.under[i+1:]...)
	f()
}

// park makes a waiter; resume lets those go on that were handed back.
func (w *world) park(retry func()) *Waiter {
	waiter := &Waiter{}
	w.waiting[waiter] = retry
	return waiter
}

func (w *world) resume(chain *Waiter) {
	for chain != nil {
		next := chain.Next()
		retry, ok := w.waiting[chain]
		if !ok {
			w.t.Fatal("handed back a waiter that did not wait")
		}
		delete(w.waiting, chain)
		w.later(retry)
		chain = next
	}
}

func (w *world) read(k Key, want uint64) {
	waiter := w.park(func() { w.read(k, want) })
	r := w.p.Read(k, want, waiter)
	if r.Outcome != Wait {
		delete(w.waiting, waiter)
	}
	switch r.Outcome {
	case Hit:
		w.pinned(k, r.Slot, want)
	case Fill:
		w.fill(k, r, want)
	case Bypass:
		w.same("bypassing read", k, want, *at(w.store, k))
	}
}

// same expects to see what was acknowledged.
func (w *world) same(what string, k Key, mask uint64, got [subs]int) {
	each(mask, func(i int) {
		if got[i] != at(w.want, k)[i] {
			w.t.Fatalf("%s of %v, sub-block %d: version %d, expected %d", what, k, i, got[i], at(w.want, k)[i])
		}
	})
}

func (w *world) pinned(k Key, slot uint32, mask uint64) {
	saw := w.arena[slot]
	w.same("hit", k, mask, saw)
	w.pins++
	w.later(func() {
		each(mask, func(i int) {
			if w.arena[slot][i] != saw[i] {
				w.t.Fatalf("%v, sub-block %d changed from version %d to %d under a pin", k, i, saw[i], w.arena[slot][i])
			}
		})
		w.pins--
		w.resume(w.p.Unpin(slot))
	})
}

func (w *world) fill(k Key, r Result, want uint64) {
	early := *at(w.store, k)
	w.claims[r.Slot] |= r.Mask
	w.later(func() {
		w.claims[r.Slot] &^= r.Mask
		if rapid.IntRange(0, 9).Draw(w.t, "fails") == 0 {
			_, chain := w.p.EndFill(r.Slot, r.Mask, want, errors.New("medium"))
			w.resume(chain)
			return
		}
		each(r.Mask, func(i int) { w.arena[r.Slot][i] = early[i] })
		pinned, chain := w.p.EndFill(r.Slot, r.Mask, want, nil)
		if pinned {
			w.pinned(k, r.Slot, want)
		} else if want != 0 {
			w.later(func() { w.read(k, want) })
		}
		w.resume(chain)
	})
}

func (w *world) write(k Key, touched, whole uint64, end End) {
	waiter := w.park(func() { w.write(k, touched, whole, end) })
	g := w.p.BeginWrite(k, touched, whole, true, waiter)
	if g.Outcome == Wait {
		return
	}
	delete(w.waiting, waiter)
	w.version++
	v := w.version
	w.claims[g.Slot] |= touched
	w.later(func() {
		w.claims[g.Slot] &^= touched
		w.ending[k] = *at(w.want, k)
		defer delete(w.ending, k)
		switch {
		case g.Outcome == Bypass:
			each(touched, func(i int) { at(w.store, k)[i], at(w.want, k)[i] = v, v })
		case end != Failed:
			w.overwrite(k, &g, whole, v, end)
		}
		w.resume(w.p.EndWrite(&g, end))
	})
}

// overwrite does what Grant asks for. What is merged with old bytes must find
// the right ones.
func (w *world) overwrite(k Key, g *Grant, whole uint64, v int, end End) {
	a := &w.arena[g.Slot]
	each(g.Missing, func(i int) { a[i] = at(w.store, k)[i] })
	w.same("merge", k, g.Mask&^whole, *a)
	each(g.Mask, func(i int) {
		a[i], at(w.want, k)[i] = v, v
		if end == Clean {
			at(w.store, k)[i] = v
		}
	})
}

func (w *world) drop(k Key, mask uint64, ok bool) {
	waiter := w.park(func() { w.drop(k, mask, ok) })
	g := w.p.BeginDrop(k, mask, waiter)
	if g.Outcome == Wait {
		return
	}
	delete(w.waiting, waiter)
	w.later(func() {
		w.ending[k] = *at(w.want, k)
		defer delete(w.ending, k)
		if ok {
			each(mask, func(i int) { at(w.store, k)[i], at(w.want, k)[i] = 0, 0 })
		}
		w.resume(w.p.EndDrop(&g, ok))
	})
}

// flush takes one run; wait makes it a SYNCHRONIZE CACHE.
func (w *world) flush(from Key, wait bool) Run {
	var waiter *Waiter
	if wait {
		waiter = w.park(func() { w.flush(from, wait) })
	}
	out := make([]Extent, 2)
	run := w.p.TakeDirty(from, Key{LU: 3}, out, waiter)
	if run.Outcome != Wait {
		delete(w.waiting, waiter)
	}
	if run.Outcome != Granted {
		return run
	}
	out = out[:run.Extents]
	w.contiguous(out)
	w.later(func() {
		ok := rapid.IntRange(0, 5).Draw(w.t, "flushed") > 0
		for _, e := range out {
			mask := ones(e.Off/4096, (e.Off+e.Len)/4096)
			w.same("flush", e.Key, mask, w.arena[e.Slot])
			if ok {
				each(mask, func(i int) { at(w.store, e.Key)[i] = w.arena[e.Slot][i] })
			}
		}
		w.resume(w.p.EndFlush(out, ok))
	})
	return run
}

func (w *world) contiguous(out []Extent) {
	for i := 1; i < len(out); i++ {
		a, b := out[i-1], out[i]
		if a.Off+a.Len != subs*4096 || b.Off != 0 || b.Key != (Key{a.Key.LU, a.Key.Block + 1}) {
			w.t.Fatalf("extents %+v are not neighbours", out)
		}
	}
}

func (w *world) random() {
	k := Key{rapid.Uint32Range(0, 2).Draw(w.t, "lu"), rapid.Uint64Range(0, 4).Draw(w.t, "block")}
	mask := rapid.Uint64Range(1, 1<<subs-1).Draw(w.t, "mask")
	switch rapid.IntRange(0, 11).Draw(w.t, "op") {
	case 0, 1, 2:
		w.read(k, mask)
	case 3, 4, 5:
		end := []End{Clean, Dirty, Dirty, Failed}[rapid.IntRange(0, 3).Draw(w.t, "how")]
		w.write(k, mask, mask&rapid.Uint64().Draw(w.t, "whole"), end)
	case 6:
		w.drop(k, mask, rapid.Bool().Draw(w.t, "ok"))
	case 7:
		w.flush(k, rapid.Bool().Draw(w.t, "wait"))
	case 8:
		if r := w.p.Prefetch(k, mask); r.Outcome == Fill {
			w.fill(k, r, 0)
		}
	default:
		w.step()
	}
}

// finish ends all that is under way, flushes, and compares the images.
func (w *world) finish() {
	for range 10000 {
		if len(w.under) == 0 && w.flush(Key{}, false).Outcome == Done {
			break
		}
		w.step()
	}
	if len(w.under) != 0 || len(w.waiting) != 0 || w.pins != 0 {
		w.t.Fatalf("%d steps, %d waiters and %d pins are left", len(w.under), len(w.waiting), w.pins)
	}
	for k, want := range w.want {
		if *at(w.store, k) != *want {
			w.t.Fatalf("%v: the store has %v, expected %v", k, *at(w.store, k), *want)
		}
	}
	if s := w.p.Stats(); s.InFlight != 0 || s.DirtyBytes != 0 || s.Free+s.Used != len(w.arena) {
		w.t.Fatalf("in the end: %+v", s)
	}
}

// Whatever is done in whatever order: readers see what was acknowledged, nothing
// changes under a pin or a flush, nobody waits for ever, and the store ends with
// what was written last.
func TestCoherence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, rapid.IntRange(1, 6).Draw(rt, "slots"))
		for i, policy := range []string{"", "golang-lru", "2q"} {
			limit := rapid.Uint32Range(0, 3).Draw(rt, "max")
			if err := w.p.SetLU(uint32(i), LUConfig{Max: limit, Replacement: policy}); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			w.random()
			if err := w.p.Check(); err != nil {
				rt.Fatal(err)
			}
		}
		w.finish()
	})
}
