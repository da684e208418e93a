package cache

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// notebook is a Journal that is looked at before and after each change.
type notebook struct {
	t     interface{ Fatalf(string, ...any) }
	slots []DirtySlot
	look  func()
}

func newNotebook(t interface{ Fatalf(string, ...any) }, slots int) *notebook {
	n := &notebook{t: t, slots: make([]DirtySlot, slots), look: func() {}}
	for i := range n.slots {
		n.slots[i] = DirtySlot{Slot: uint32(i), Key: noKey}
	}
	return n
}

// Assign implements Journal.
func (n *notebook) Assign(slot, lu uint32, block uint64) {
	if n.slots[slot].Mask != 0 {
		n.t.Fatalf("slot %d was assigned while dirty", slot)
	}
	n.look()
	n.slots[slot].Key = Key{lu, block}
	n.look()
}

// MarkDirty implements Journal.
func (n *notebook) MarkDirty(slot uint32, mask uint64) {
	for _, d := range n.slots {
		if d.Mask != 0 && d.Slot != slot && d.Key == n.slots[slot].Key {
			n.t.Fatalf("block %v is dirty in slots %d and %d", d.Key, d.Slot, slot)
		}
	}
	n.look()
	n.slots[slot].Mask |= mask
	n.look()
}

// MarkClean implements Journal.
func (n *notebook) MarkClean(slot uint32, mask uint64) {
	n.look()
	n.slots[slot].Mask &^= mask
	n.look()
}

// dirty returns what is marked.
func (n *notebook) dirty() (out []DirtySlot) {
	for _, d := range n.slots {
		if d.Mask != 0 {
			out = append(out, d)
		}
	}
	return out
}

// mortal is a world whose process may be killed at any time.
type mortal struct {
	*world
	config  Config
	mem     []byte
	journal *notebook
}

func newMortal(t *rapid.T) *mortal {
	slots := rapid.IntRange(1, 6).Draw(t, "slots")
	m := &mortal{world: emptyWorld(t, slots), mem: ownMemory(slots), journal: newNotebook(t, slots)}
	m.config = Config{ID: 7, Slots: slots, BlockSize: subs * 4096, LUs: 3, Journal: m.journal}
	m.journal.look = m.kill
	var err error
	if m.p, err = NewPartition(m.config, m.mem); err != nil {
		t.Fatal(err)
	}
	return m
}

// successor is the world of a process that attaches what a kill would leave now:
// what is half-written has no version that was ever there.
func (m *mortal) successor() *mortal {
	s := &mortal{world: emptyWorld(m.t, len(m.arena)), config: m.config, mem: ownMemory(len(m.arena)), journal: newNotebook(m.t, len(m.arena))}
	copy(s.mem, m.mem)
	copy(s.journal.slots, m.journal.slots)
	copy(s.arena, m.arena)
	s.config.Journal, s.version = s.journal, m.version
	for k, v := range m.store {
		*at(s.store, k) = *v
	}
	for k, v := range m.want {
		*at(s.want, k) = *v
	}
	for slot, mask := range m.claims {
		if slot != NoSlot {
			each(mask&^m.journal.slots[slot].Mask, func(i int) { s.arena[slot][i] = -1 })
		}
	}
	var err error
	if s.p, _, err = Attach(s.config, s.mem, s.journal.dirty()); err != nil {
		m.t.Fatalf("attach: %v", err)
	}
	if err := s.p.Check(); err != nil {
		m.t.Fatalf("attach: %v", err)
	}
	s.journal.look = s.kill
	return s
}

// kill looks at what a kill would leave now: of every sub-block what was
// acknowledged last, or what is being acknowledged.
func (m *mortal) kill() {
	s := m.successor()
	for k, want := range m.want {
		got := *at(s.store, k)
		if slot := s.p.index.find(s.p.blocks, k, k.hash()); slot != NoSlot {
			each(s.p.blocks[slot].valid, func(i int) { got[i] = s.arena[slot][i] })
		}
		before, ending := m.ending[k]
		for i := range got {
			if got[i] != want[i] && !(ending && got[i] == before[i]) {
				m.t.Fatalf("killed now, %v, sub-block %d: version %d, expected %d", k, i, got[i], want[i])
			}
		}
	}
}

// A process that is killed at any moment, also in the middle of a change of the
// journal, leaves what was acknowledged, and no block is ever dirty in two slots.
// The next process goes on with it.
func TestKilledAtAnyMoment(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMortal(rt)
		for range rapid.IntRange(1, 4).Draw(rt, "processes") {
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				m.random()
				m.kill()
				m.agree()
			}
			m = m.successor()
		}
		m.finish()
	})
}

// agree compares the journal with the records.
func (m *mortal) agree() {
	for slot := range m.p.blocks {
		b, d := &m.p.blocks[slot], m.journal.slots[slot]
		if b.dirty != d.Mask || b.dirty != 0 && b.key() != d.Key {
			m.t.Fatalf("slot %d: the record of %v says %#x, the journal of %v %#x", slot, b.key(), b.dirty, d.Key, d.Mask)
		}
	}
}

// A process in order leaves everything: clean blocks stay valid, and in the order
// of their use.
func TestAttachKeepsCleanBlocks(t *testing.T) {
	c := Config{Slots: 8, BlockSize: subs * 4096, LUs: 2}
	mem := ownMemory(c.Slots)
	p, err := NewPartition(c, mem)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(8) {
		access(p, Key{1, n})
	}
	access(p, Key{1, 0})
	p, r, err := Attach(c, mem, nil)
	if err != nil || r != (Recovered{Blocks: 8}) {
		t.Fatalf("%+v, %v", r, err)
	}
	access(p, Key{1, 100}) // block 1 is the oldest
	for n := range uint64(8) {
		if _, ok := p.TryRead(Key{1, n}, 1); ok == (n == 1) {
			t.Errorf("block %d is there: %v", n, ok)
		}
	}
}

// spoil is what a record may be like, and what becomes of it.
type spoil struct {
	name    string
	journal []DirtySlot
	change  func(b []block, h *header)
	want    map[Key][2]uint64 // valid and dirty
	dropped int
}

// Before it is spoiled, slots 0 and 1 hold blocks 0 and 1 of LU 1 with the
// sub-blocks 0b0111, all of them clean.
var spoils = []spoil{
	{"nothing", nil, func([]block, *header) {}, map[Key][2]uint64{{1, 0}: {7, 0}, {1, 1}: {7, 0}}, 0},
	{"nothing was ever there", nil, func(_ []block, h *header) { *h = header{} }, nil, 0},
	{"another version", nil, func(_ []block, h *header) { h.version++ }, nil, 0},
	{"another partition", nil, func(_ []block, h *header) { h.id++ }, nil, 0},
	{
		"a header that is torn, with dirty data", []DirtySlot{{0, Key{1, 0}, 1}},
		func(_ []block, h *header) { h.magic = 0 }, map[Key][2]uint64{{1, 0}: {1, 1}}, 0,
	},
	{"an unknown state", nil, func(b []block, _ *header) { b[0].state = 9 }, map[Key][2]uint64{{1, 1}: {7, 0}}, 1},
	{"an LU that is not there", nil, func(b []block, _ *header) { b[0].lu = 3 }, map[Key][2]uint64{{1, 1}: {7, 0}}, 1},
	{"bits beyond the block", nil, func(b []block, _ *header) { b[0].valid |= 1 << subs }, map[Key][2]uint64{{1, 1}: {7, 0}}, 1},
	{"a clean block twice", nil, func(b []block, _ *header) { b[0].number = 1 }, nil, 2},
	{"a clean block three times", nil, func(b []block, _ *header) { b[0].number = 1; b[2] = b[1] }, nil, 3},
	{
		"a block clean and dirty", []DirtySlot{{1, Key{1, 1}, 2}},
		func(b []block, _ *header) { b[0].number = 1 }, map[Key][2]uint64{{1, 1}: {7, 2}}, 1,
	},
	{
		"dirty by the record alone", nil,
		func(b []block, _ *header) { b[0].dirty = 3 }, map[Key][2]uint64{{1, 0}: {4, 0}, {1, 1}: {7, 0}}, 0,
	},
	{
		"more dirty by the record than by the journal", []DirtySlot{{0, Key{1, 0}, 1}},
		func(b []block, _ *header) { b[0].dirty = 3 }, map[Key][2]uint64{{1, 0}: {5, 1}, {1, 1}: {7, 0}}, 0,
	},
	{
		"dirty by the journal alone", []DirtySlot{{0, Key{1, 0}, 8}},
		func([]block, *header) {}, map[Key][2]uint64{{1, 0}: {15, 8}, {1, 1}: {7, 0}}, 0,
	},
	{
		"a record of another block", []DirtySlot{{0, Key{0, 9}, 2}},
		func([]block, *header) {}, map[Key][2]uint64{{0, 9}: {2, 2}, {1, 1}: {7, 0}}, 0,
	},
	{
		"a record of no block", []DirtySlot{{5, Key{0, 9}, 2}},
		func([]block, *header) {}, map[Key][2]uint64{{0, 9}: {2, 2}, {1, 0}: {7, 0}, {1, 1}: {7, 0}}, 0,
	},
}

// What contradicts itself is dropped if it is clean, and kept if it is dirty.
func TestAttachDropsWhatIsDoubtful(t *testing.T) {
	c := Config{ID: 7, Slots: 8, BlockSize: subs * 4096, LUs: 3}
	for _, tc := range spoils {
		t.Run(tc.name, func(t *testing.T) {
			mem := ownMemory(c.Slots)
			p, err := NewPartition(c, mem)
			if err != nil {
				t.Fatal(err)
			}
			for n := range uint64(2) {
				g := p.BeginWrite(Key{1, n}, 7, 7, true, nil)
				p.EndWrite(&g, Clean)
				if g.Slot != uint32(n) {
					t.Fatalf("block %d is in slot %d", n, g.Slot)
				}
			}
			tc.change(p.blocks, (*header)(unsafe.Pointer(unsafe.SliceData(mem))))
			p, r, err := Attach(c, mem, tc.journal)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			found := map[Key][2]uint64{}
			for i := range p.blocks {
				if b := &p.blocks[i]; b.state == stateResident {
					found[b.key()] = [2]uint64{b.valid, b.dirty}
				}
			}
			if r.Dropped != tc.dropped || r.Blocks != len(found) || len(found) != len(tc.want) {
				t.Errorf("%+v and %v, expected %v and %d dropped", r, found, tc.want, tc.dropped)
			}
			for k, want := range tc.want {
				if found[k] != want {
					t.Errorf("block %v: valid and dirty %#x, expected %#x", k, found[k], want)
				}
			}
		})
	}
}

// A journal that contradicts itself is not believed, and nothing is changed.
func TestAttachRefuses(t *testing.T) {
	c := Config{ID: 7, Slots: 8, BlockSize: subs * 4096, LUs: 3}
	mem := ownMemory(c.Slots)
	p, err := NewPartition(c, mem)
	if err != nil {
		t.Fatal(err)
	}
	access(p, Key{1, 0})
	before := slices.Clone(mem)
	for name, dirty := range map[string][]DirtySlot{
		"a slot that is not there": {{8, Key{}, 1}},
		"an LU that is not there":  {{0, Key{3, 0}, 1}},
		"nothing dirty":            {{0, Key{}, 0}},
		"bits beyond the block":    {{0, Key{}, 1 << subs}},
		"a slot twice":             {{0, Key{}, 1}, {0, Key{1, 1}, 1}},
		"a block in two slots":     {{0, Key{}, 1}, {1, Key{}, 2}},
	} {
		if _, _, err := Attach(c, mem, dirty); err == nil {
			t.Errorf("%s: it was attached", name)
		} else {
			t.Log(err)
		}
		if !slices.Equal(mem, before) {
			t.Fatalf("%s: the refusal has changed records", name)
		}
	}
	if _, err := NewPartition(c, make([]byte, 100)); err == nil {
		t.Error("100 bytes of metadata were accepted")
	}
}

// TestSlotsInOrder: the blocks of a partition whose memory is new follow each other, in
// memory of its own and in a segment.
func TestSlotsInOrder(t *testing.T) {
	c := Config{Slots: 8, BlockSize: 4096, LUs: 1}
	own, err := NewPartition(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	attached, _, err := Attach(c, ownMemory(c.Slots), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Partition{own, attached} {
		for n := range uint64(8) {
			if r := p.Read(Key{0, n}, 1, nil); r.Outcome != Fill || r.Slot != uint32(n) {
				t.Errorf("block %d: found %+v", n, r)
			}
		}
	}
}
