package segment

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tape is a segment in memory whose writer dies before the store after left
// others.
type tape struct {
	mapped
	left   int
	stores int
}

// cut is the panic of a writer that dies.
type cut struct{}

func (t *tape) spend() {
	if t.stores == t.left {
		panic(cut{})
	}
	t.stores++
}

func (t *tape) store(at int, v uint64) { t.spend(); t.mapped.store(at, v) }

func (t *tape) swap(at int, old, v uint64) bool { t.spend(); return t.mapped.swap(at, old, v) }

// until runs f and reports whether it died.
func until(f func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			_ = r.(cut)
			died = true
		}
	}()
	f()
	return false
}

const unlimited = -1

var testGeometry = Geometry{Slots: 6, BlockSize: 256 << 10, SubBlock: 4 << 10, Layout: "index 1, 2 partitions",
	Areas: []Area{{"index", 100, -1, true}, {"data", 5000, -1, false}}}

func testHeader() header {
	h := header{salt: 0x1234567890abcdef, created: 5, identity: "iqn.2026-11.test:server", build: "v1", geometry: testGeometry}
	h.offsets, h.total = testGeometry.arrange(pageBytes, 2<<20)
	return h
}

func newTape() (*tape, *Journal, state) {
	h := testHeader()
	t := &tape{mapped: make(mapped, h.total/8), left: unlimited}
	j, s := lay(t, h, 1)
	return t, j, s
}

func TestSumIsCRC32C(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOf(rapid.Uint64()).Draw(rt, "words")
		crc, text := uint32(0), []byte{}
		for _, w := range list {
			crc = sum(crc, w)
			text = binary.LittleEndian.AppendUint64(text, w)
		}
		if want := crc32.Checksum(text, castagnoli); crc != want {
			rt.Fatalf("%#x, expected %#x", crc, want)
		}
	})
}

func TestTextRoundTrip(t *testing.T) {
	w := make(mapped, 4)
	for text, want := range map[string]string{"": "", "a": "a", "12345678": "12345678", "123456789": "123456789", "1234567890123456789": "1234567890123456"} {
		storeText(w, 1, 2, text)
		if got := loadText(w, 1, 2); got != want || w[0]|w[3] != 0 {
			t.Errorf("%q: %q, expected %q; words around it %d %d", text, got, want, w[0], w[3])
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	w, _, _ := newTape()
	c, refused := inspect(w, int64(len(w.mapped)*8))
	if refused != nil {
		t.Fatal(refused)
	}
	want := testHeader()
	want.geometry.Areas = []Area{{"index", 100, -1, false}, {"data", 5000, -1, false}}
	if !reflect.DeepEqual(c.header, want) {
		t.Errorf("%+v, expected %+v", c.header, want)
	}
	if c.state.generation != 1 || c.state.build != "v1" || c.state.process != 1 || c.clean() || c.torn {
		t.Errorf("state %+v, torn %v", c.state, c.torn)
	}
	if r := c.admit(want.identity, testGeometry); r != nil {
		t.Error(r)
	}
}

func TestGeometryCheck(t *testing.T) {
	for name, change := range map[string]func(*Geometry){
		"no slots":          func(g *Geometry) { g.Slots = 0 },
		"too many slots":    func(g *Geometry) { g.Slots = maxSlots + 1 },
		"no block":          func(g *Geometry) { g.BlockSize = 0 },
		"no sub-block":      func(g *Geometry) { g.SubBlock = 0 },
		"too many bits":     func(g *Geometry) { g.SubBlock = 2048 },
		"uneven":            func(g *Geometry) { g.SubBlock = 5000 },
		"long layout":       func(g *Geometry) { g.Layout = string(make([]byte, maxText+1)) },
		"nameless area":     func(g *Geometry) { g.Areas[0].Name = "" },
		"empty area":        func(g *Geometry) { g.Areas[0].Size = 0 },
		"two of the name":   func(g *Geometry) { g.Areas[0].Name = "data" },
		"too many areas":    func(g *Geometry) { g.Areas = make([]Area, maxAreas+1) },
		"name that is long": func(g *Geometry) { g.Areas[0].Name = string(bytes.Repeat([]byte("x"), maxName+1)) },
	} {
		g := testGeometry
		g.Areas = slices.Clone(g.Areas)
		if err := g.check(); err != nil {
			t.Fatal(err)
		}
		if change(&g); g.check() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Areas never overlap with anything and begin at pages.
func TestArrange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := Geometry{Slots: rapid.IntRange(1, 10000).Draw(rt, "slots"), BlockSize: 4096, SubBlock: 4096}
		for i := range rapid.IntRange(0, 5).Draw(rt, "areas") {
			g.Areas = append(g.Areas, Area{Name: string(rune('a' + i)), Size: rapid.Int64Range(1, 8<<20).Draw(rt, "size")})
		}
		page := rapid.SampledFrom([]int64{pageBytes, 2 << 20}).Draw(rt, "page")
		h := header{geometry: g}
		h.offsets, h.total = g.arrange(page, 2<<20)
		if err := h.check(); err != nil {
			rt.Fatal(err)
		}
		for i, a := range g.Areas {
			if h.offsets[i]%page != 0 || a.Size >= 2<<20 && h.offsets[i]%(2<<20) != 0 || h.total%page != 0 {
				rt.Fatalf("offsets %v, total %d", h.offsets, h.total)
			}
		}
	})
}

// A life of three processes: the state says who ended in order.
func TestStates(t *testing.T) {
	w, j, s := newTape()
	if err := j.Assign(2, 7, 8); err != nil {
		t.Fatal(err)
	}
	j.MarkDirty(2, 0xf0)
	s.status = statusClean
	s.write(w)
	c, refused := inspect(w, int64(len(w.mapped)*8))
	if refused != nil || !c.clean() || len(c.dirty) != 1 || c.dirtyBytes() != 4*4096 {
		t.Fatalf("after a clean end: %+v %v", c, refused)
	}
	_, s = c.adopt(w, "v2", 2)
	c, refused = inspect(w, int64(len(w.mapped)*8))
	if refused != nil || c.clean() || c.state.generation != 2 || s.generation != 2 || c.state.build != "v2" {
		t.Fatalf("while the second serves: %+v %v", c, refused)
	}
}

// Wherever a writer of the state dies, the segment can be read, and clean is
// only what has been closed to the end.
func TestStateCutAtEveryStore(t *testing.T) {
	life := func(w *tape, finished *status) {
		c, refused := inspect(w, int64(len(w.mapped)*8))
		if refused != nil {
			t.Fatal(refused)
		}
		for range 3 {
			_, s := c.adopt(w, "next", 9)
			*finished = statusOpen
			s.status, s.sums[0] = statusClean, 77
			s.write(w)
			*finished = statusClean
			c, _ = inspect(w, int64(len(w.mapped)*8))
		}
	}
	base, _, _ := newTape()
	for left := 0; ; left++ {
		w := &tape{mapped: slices.Clone(base.mapped), left: left}
		finished := statusOpen
		died := until(func() { life(w, &finished) })
		c, refused := inspect(w, int64(len(w.mapped)*8))
		if refused != nil {
			t.Fatalf("cut after %d stores: %v", left, refused)
		}
		if c.clean() && (finished != statusClean || c.state.sums[0] != 77) {
			t.Fatalf("cut after %d stores: clean", left)
		}
		if !died {
			return
		}
	}
}

// A damaged newest state does not let the older one, which says clean, count.
func TestDamagedStateIsNotClean(t *testing.T) {
	w, sound := pack(t, statusClean)
	sound.adopt(w, "v2", 2)
	newest := stateAt[0]
	if w[stateAt[1]] > w[stateAt[0]] {
		newest = stateAt[1]
	}
	for at := newest; at < newest+stateWords; at++ {
		for b := range 8 {
			w[at] ^= 1 << (8 * b)
			if c, refused := inspect(w, int64(len(w)*8)); refused != nil || c.clean() {
				t.Errorf("word %d, byte %d: clean %v, refused %v", at-newest, b, c.clean(), refused)
			}
			w[at] ^= 1 << (8 * b)
		}
	}
}

// pack is a segment with clean and dirty records, as bytes.
func pack(t testing.TB, last status) (mapped, contents) {
	w, j, s := newTape()
	for slot, mask := range []uint64{0, 1, 1 << 63, ^uint64(0), 0xff00ff} {
		if err := j.Assign(uint32(slot), 3, uint64(slot)*10); err != nil {
			t.Fatal(err)
		}
		j.MarkDirty(uint32(slot), mask)
	}
	s.status, s.sums = last, [maxAreas]uint32{1, 2}
	s.write(w)
	c, refused := inspect(w, int64(len(w.mapped)*8))
	if refused != nil {
		t.Fatal(refused)
	}
	return w.mapped, c
}

// Whichever byte of header, state or journal changes, and to what: the segment
// is refused, or means what it did before; of a crashed one never that it ended
// in order.
func TestEveryByteIsCoveredOrHarmless(t *testing.T) {
	for _, last := range []status{statusOpen, statusClean} {
		w, sound := pack(t, last)
		refusals, harmless := 0, 0
		for at := range (headWords + journalWords(testGeometry.Slots)) * 8 {
			for _, flip := range []uint64{1 << (at % 7), w[at/8] >> (8 * (at % 8)) & 0xff} { // a bit, and to zero
				old := w[at/8]
				w[at/8] ^= flip << (8 * (at % 8))
				c, refused := inspect(w, int64(len(w)*8))
				switch {
				case refused != nil:
					refusals++
				case !reflect.DeepEqual(c.header, sound.header) || !slices.Equal(c.dirty, sound.dirty) || c.clean() && last == statusOpen:
					t.Fatalf("byte %d, bits %#x: accepted as %+v", at, flip, c)
				default:
					harmless++
				}
				w[at/8] = old
			}
		}
		if refusals == 0 || harmless == 0 {
			t.Errorf("%d refusals, %d harmless changes: expected both", refusals, harmless)
		}
	}
}

// All bytes of a dirty record that mean something are covered.
func TestRecordBytesAreCovered(t *testing.T) {
	w, _ := pack(t, statusOpen)
	first := (headWords + 3*recordWords) * 8 // slot 3: all is dirty
	for at := first; at < first+6*8; at++ {
		w[at/8] ^= 0x10 << (8 * (at % 8))
		if _, refused := inspect(w, int64(len(w)*8)); refused == nil || refused.Reason != Damaged {
			t.Errorf("byte %d of the record: %v, expected a refusal", at-first, refused)
		}
		w[at/8] ^= 0x10 << (8 * (at % 8))
	}
}

// Any bytes: no panic, and what is accepted is consistent in itself.
func FuzzInspect(f *testing.F) {
	w, _ := pack(f, statusClean)
	image := make([]byte, len(w)*8)
	for i, word := range w {
		binary.NativeEndian.PutUint64(image[i*8:], word)
	}
	f.Add(image, 0, uint64(0))
	f.Add(image[:headWords*8], 5, uint64(1))
	f.Add([]byte{}, 0, uint64(0))
	f.Fuzz(func(t *testing.T, image []byte, at int, v uint64) {
		w := make(mapped, len(image)/8)
		for i := range w {
			w[i] = binary.NativeEndian.Uint64(image[i*8:])
		}
		if len(w) >= headWords {
			w[uint(at)%headWords] = v
			w[atSum] = uint64(sumWords(w, atFormat, atSum-atFormat)) // past the checksum, to the checks behind it
		}
		c, refused := inspect(w, int64(len(w)*8))
		if refused != nil {
			if refused.Found == "" || refused.Expected == "" {
				t.Errorf("refused without words: %+v", refused)
			}
			return
		}
		for _, r := range c.dirty {
			if int(r.Slot) >= c.header.geometry.Slots || r.Mask == 0 {
				t.Errorf("range %+v", r)
			}
		}
		for i, a := range c.header.geometry.Areas {
			if c.header.offsets[i]+a.Size > int64(len(w)*8) {
				t.Errorf("area %+v at %d", a, c.header.offsets[i])
			}
		}
	})
}
