package segment

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// step is an operation on the journal.
type step struct {
	kind  int // assign, dirty, clean
	slot  uint32
	block uint64
	mask  uint64
}

const (
	stepAssign = iota
	stepDirty
	stepClean
)

func (s step) run(j *Journal) error {
	switch s.kind {
	case stepAssign:
		return j.Assign(s.slot, s.block%2, s.block)
	case stepDirty:
		j.MarkDirty(s.slot, s.mask)
	case stepClean:
		j.MarkClean(s.slot, s.mask)
	}
	return nil
}

// model is what the journal should hold.
type model struct {
	ranges   [6]Range
	sequence uint64
}

func (m *model) apply(s step) {
	r := &m.ranges[s.slot]
	switch s.kind {
	case stepAssign:
		m.sequence++
		*r = Range{Volume: s.block % 2, Block: s.block, Slot: s.slot, Sequence: m.sequence}
	case stepDirty:
		r.Mask |= s.mask
	case stepClean:
		r.Mask &^= s.mask
	}
}

// allowed says whether a correct cache would do the step now.
func (m *model) allowed(s step) bool {
	r := m.ranges[s.slot]
	if s.kind == stepAssign {
		return r.Mask == 0
	}
	return r.Sequence != 0
}

// bySlot is what another process would trust, by slot.
func (m *model) bySlot() (masks [6]uint64) {
	newest, _ := resolve(slices.DeleteFunc(slices.Clone(m.ranges[:]), func(r Range) bool { return r.Mask == 0 }))
	for _, r := range newest {
		masks[r.Slot] = r.Mask
	}
	return masks
}

func drawSteps(rt *rapid.T) (steps []step) {
	var m model
	for range rapid.IntRange(1, 40).Draw(rt, "steps") {
		s := step{
			kind:  rapid.SampledFrom([]int{stepAssign, stepDirty, stepDirty, stepClean}).Draw(rt, "kind"),
			slot:  uint32(rapid.IntRange(0, 5).Draw(rt, "slot")),
			block: uint64(rapid.IntRange(0, 3).Draw(rt, "block")),
			mask:  rapid.SampledFrom([]uint64{1, 1 << 40, 1<<31 | 1<<32, 0xffff, ^uint64(0), rapid.Uint64().Draw(rt, "mask")}).Draw(rt, "which"),
		}
		if s.kind == stepClean && rapid.Bool().Draw(rt, "all") {
			s.mask = ^uint64(0)
		}
		if m.allowed(s) {
			m.apply(s)
			steps = append(steps, s)
		}
	}
	return steps
}

// Wherever a process dies, the next one finds every mark that had been made and
// none that had been taken away; of the step under way, any part.
func TestJournalCutAtEveryStore(t *testing.T) {
	base, _, _ := newTape()
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt)
		for left := 0; ; left++ {
			w := &tape{mapped: slices.Clone(base.mapped), left: left}
			j := &Journal{w: w, slots: 6, salt: testHeader().salt}
			var before, after model
			died := until(func() {
				for _, s := range steps {
					after.apply(s)
					if err := s.run(j); err != nil {
						rt.Fatal(err)
					}
					before.apply(s)
				}
			})
			checkCut(rt, w.mapped, before.bySlot(), after.bySlot(), left)
			if !died {
				return
			}
		}
	})
}

func checkCut(rt *rapid.T, w mapped, before, after [6]uint64, left int) {
	c, refused := inspect(w, int64(len(w)*8))
	if refused != nil {
		rt.Fatalf("cut after %d stores: %v", left, refused)
	}
	var found [6]uint64
	for _, r := range c.dirty {
		found[r.Slot] = r.Mask
	}
	for slot, mask := range found {
		if must := before[slot] & after[slot]; must&^mask != 0 {
			rt.Fatalf("cut after %d stores: slot %d has %#x, lost %#x", left, slot, mask, must&^mask)
		}
		if may := before[slot] | after[slot]; mask&^may != 0 {
			rt.Fatalf("cut after %d stores: slot %d has %#x, expected nothing of %#x", left, slot, mask, mask&^may)
		}
	}
}

func TestAssignKeepsDirtyData(t *testing.T) {
	_, j, _ := newTape()
	if err := j.Assign(1, 2, 3); err != nil {
		t.Fatal(err)
	}
	j.MarkDirty(1, 1<<50)
	if err := j.Assign(1, 2, 4); err != ErrDirtySlot {
		t.Errorf("%v, expected %v", err, ErrDirtySlot)
	}
	if j.MarkClean(1, 1<<50); j.Dirty(1) != 0 {
		t.Errorf("dirty %#x", j.Dirty(1))
	}
	if err := j.Assign(1, 2, 4); err != nil {
		t.Error(err)
	}
}

// The newest slot of a block has its data; marks that it has taken over do not
// come back when it becomes clean.
func TestNewestSlotCounts(t *testing.T) {
	w, j, _ := newTape()
	for _, s := range []step{{stepAssign, 4, 1, 0}, {stepDirty, 4, 1, 0b111}, {stepAssign, 0, 1, 0}, {stepDirty, 0, 1, 0b110}} {
		if err := s.run(j); err != nil {
			t.Fatal(err)
		}
	}
	c, refused := inspect(w, int64(len(w.mapped)*8))
	want := []Range{{1, 1, 0b110, 0, 2}, {1, 1, 0b001, 4, 1}}
	if refused != nil || !slices.Equal(c.dirty, want) {
		t.Fatalf("%+v %v, expected %+v", c.dirty, refused, want)
	}
	next, _ := c.adopt(w, "v2", 2)
	next.MarkClean(0, 0b110)
	if got := next.Dirty(4); got != 0b001 {
		t.Errorf("the old slot has %#b, expected only its own bit", got)
	}
	if err := next.Assign(5, 9, 9); err != nil {
		t.Fatal(err)
	}
	next.MarkDirty(5, 1)
	if r, _, sound := next.record(5); !sound || r.Sequence != 3 {
		t.Errorf("%+v %v, expected sequence 3, after all others", r, sound)
	}
}

func TestBlocksOfFewSubBlocks(t *testing.T) {
	h := testHeader()
	h.geometry.BlockSize = 8 * 4096
	w := make(mapped, h.total/8)
	j, _ := lay(w, h, 1)
	if err := j.Assign(0, 0, 0); err != nil {
		t.Fatal(err)
	}
	j.MarkDirty(0, 0xff)
	if _, refused := inspect(w, h.total); refused != nil {
		t.Fatal(refused)
	}
	j.MarkDirty(0, 0x100)
	if _, refused := inspect(w, h.total); refused == nil || refused.Reason != Damaged {
		t.Errorf("%v, expected a bit outside of the block to be refused", refused)
	}
}

// Threads that mark the same slot do not lose each other's marks.
func TestMarksAtOnce(t *testing.T) {
	w, j, _ := newTape()
	shared := &Journal{w: w.mapped, slots: 6, salt: j.salt}
	if err := shared.Assign(3, 1, 1); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for thread := range 4 {
		group.Go(func() {
			own := uint64(0x1111111111111111) << thread
			for range 2000 {
				shared.MarkDirty(3, own)
				shared.MarkClean(3, own&0xffff0000ffff)
				if got := shared.Dirty(3) & own; got != own&^0xffff0000ffff {
					t.Errorf("thread %d has %#x", thread, got)
				}
			}
		})
	}
	group.Wait()
	c, refused := inspect(w, int64(len(w.mapped)*8))
	if refused != nil || len(c.dirty) != 1 || c.dirty[0].Mask != 0xffff0000ffff0000 {
		t.Errorf("%+v %v", c.dirty, refused)
	}
}

func TestMarksDoNotAllocate(t *testing.T) {
	w, _, _ := newTape()
	j := &Journal{w: w.mapped, slots: 6, salt: 1}
	if n := testing.AllocsPerRun(100, func() {
		if err := j.Assign(2, 5, 6); err != nil {
			t.Error(err)
		}
		j.MarkDirty(2, 0xff00000000ff)
		j.MarkClean(2, 0xff00000000ff)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMark(b *testing.B) {
	w, _, _ := newTape()
	j := &Journal{w: w.mapped, slots: 6, salt: 1}
	if err := j.Assign(2, 5, 6); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		mask uint64
	}{{"one sub-block", 1 << 7}, {"all", ^uint64(0)}} {
		b.Run(c.name, func(b *testing.B) { // dirty and clean again
			b.ReportAllocs()
			for b.Loop() {
				j.MarkDirty(2, c.mask)
				j.MarkClean(2, c.mask)
			}
		})
	}
	b.Run("assign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := j.Assign(2, 5, 6); err != nil {
				b.Fatal(err)
			}
		}
	})
}
