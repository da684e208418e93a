package segment

import (
	"fmt"
	"slices"
	"strings"
)

const (
	magic  = uint64(0x0a314745536e754c) // "LunSEG1\n"
	format = 1                          // of everything in this package

	pageBytes = 4096
	pageWords = pageBytes / 8
	headWords = 2 * pageWords // before the journal

	maxAreas = 72
	maxSlots = 1 << 28
	maxText  = 128 // bytes of identity and layout
	maxBuild = 64
	maxName  = 32
	maxSize  = 1 << 46 // bytes of an area
)

// Positions in the header, in words. Magic, format, identity, build and
// checksum stay where they are in all formats, so that any version can say
// what it found.
const (
	atMagic    = 0
	atFormat   = 1
	atTotal    = 2
	atSlots    = 3
	atBlock    = 4 // block size, sub-block size in the upper half
	atSalt     = 5
	atCreated  = 6
	atCount    = 7
	atIdentity = 8
	atLayout   = atIdentity + maxText/8
	atBuild    = atLayout + maxText/8
	atAreas    = atBuild + maxBuild/8
	atSum      = pageWords - 1

	areaWords = maxName/8 + 2 // name, offset, size
)

// Geometry is what must be the same for a segment to be attached.
type Geometry struct {
	Slots     int    // cache blocks
	BlockSize int    // bytes
	SubBlock  int    // bytes that a dirty bit stands for; at most 64 in a block
	Layout    string // what else decides how the areas are to be read: format of the index, partitions, ...
	Areas     []Area
}

// Area is a piece of the segment for the caller's use.
type Area struct {
	Name     string
	Size     int64 // bytes
	Node     int   // the kernel's number of the NUMA node to take it from, -1 for any; not stored
	Checksum bool  // whether it is checked after a clean shutdown; not stored
}

// header is the first page, decoded.
type header struct {
	total    int64
	salt     uint64
	created  int64 // Unix time in nanoseconds
	identity string
	build    string
	geometry Geometry
	offsets  []int64
}

// check says what is wrong with a geometry that was asked for.
func (g Geometry) check() error {
	switch {
	case g.Slots < 1 || g.Slots > maxSlots:
		return fmt.Errorf("cache segment of %d blocks: expected 1 to %d", g.Slots, maxSlots)
	case g.SubBlock < 1 || g.BlockSize%g.SubBlock != 0 || g.BlockSize/g.SubBlock > 64 || g.BlockSize < 1 || g.BlockSize > 1<<30:
		return fmt.Errorf("cache segment with blocks of %d bytes in parts of %d: expected 1 to 64 equal parts", g.BlockSize, g.SubBlock)
	case len(g.Layout) > maxText:
		return fmt.Errorf("cache segment layout %q: expected at most %d bytes", g.Layout, maxText)
	case len(g.Areas) > maxAreas:
		return fmt.Errorf("cache segment of %d areas: expected at most %d", len(g.Areas), maxAreas)
	}
	for i, a := range g.Areas {
		if a.Name == "" || len(a.Name) > maxName || strings.ContainsRune(a.Name, 0) || a.Size < 1 || a.Size > maxSize {
			return fmt.Errorf("cache segment area %q of %d bytes: expected a name of 1 to %d bytes and 1 to %d bytes", a.Name, a.Size, maxName, int64(maxSize))
		}
		if slices.ContainsFunc(g.Areas[:i], func(b Area) bool { return b.Name == a.Name }) {
			return fmt.Errorf("cache segment has two areas %q", a.Name)
		}
	}
	return nil
}

// difference describes the first point in which a stored geometry is not the
// one that is wanted.
func (g Geometry) difference(want Geometry) (found, expected string, differs bool) {
	for _, p := range []struct {
		name        string
		found, want any
	}{
		{"layout", g.Layout, want.Layout},
		{"bytes per block", g.BlockSize, want.BlockSize},
		{"bytes per dirty bit", g.SubBlock, want.SubBlock},
		{"cache blocks", g.Slots, want.Slots},
		{"areas", areaList(g.Areas), areaList(want.Areas)},
	} {
		if p.found != p.want {
			return fmt.Sprintf("%s: %v", p.name, p.found), fmt.Sprint(p.want), true
		}
	}
	return "", "", false
}

func areaList(areas []Area) string {
	list := make([]string, len(areas))
	for i, a := range areas {
		list[i] = fmt.Sprintf("%s (%d bytes)", a.Name, a.Size)
	}
	return strings.Join(list, ", ")
}

// journalWords is what the records of a number of slots take.
func journalWords(slots int) int { return slots * recordWords }

// arrange places the areas behind the journal: small ones at pages, large ones
// at multiples of large, so that they can have huge pages. The whole is a
// multiple of page.
func (g Geometry) arrange(page, large int64) (offsets []int64, total int64) {
	at := roundUp(int64(headWords+journalWords(g.Slots))*8, page)
	for _, a := range g.Areas {
		if a.Size >= large {
			at = roundUp(at, large)
		}
		offsets = append(offsets, at)
		at = roundUp(at+a.Size, page)
	}
	return offsets, at
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// write stores the header, the magic last.
func (h header) write(w words) {
	w.store(atFormat, format)
	w.store(atTotal, uint64(h.total))
	w.store(atSlots, uint64(h.geometry.Slots))
	w.store(atBlock, uint64(h.geometry.BlockSize)|uint64(h.geometry.SubBlock)<<32)
	w.store(atSalt, h.salt)
	w.store(atCreated, uint64(h.created))
	w.store(atCount, uint64(len(h.geometry.Areas)))
	storeText(w, atIdentity, maxText/8, h.identity)
	storeText(w, atLayout, maxText/8, h.geometry.Layout)
	storeText(w, atBuild, maxBuild/8, h.build)
	for i, a := range h.geometry.Areas {
		at := atAreas + i*areaWords
		storeText(w, at, maxName/8, a.Name)
		w.store(at+maxName/8, uint64(h.offsets[i]))
		w.store(at+maxName/8+1, uint64(a.Size))
	}
	w.store(atSum, uint64(sumWords(w, atFormat, atSum-atFormat)))
	w.store(atMagic, magic)
}

// readHeader decodes the header of a segment of the given bytes in all. The
// caller has checked magic and format.
func readHeader(w words, size int64) (header, error) {
	if found, want := w.load(atSum), sumWords(w, atFormat, atSum-atFormat); found != uint64(want) {
		return header{}, fmt.Errorf("header checksum %#x, computed %#x", found, want)
	}
	h := header{
		total:    int64(w.load(atTotal)),
		salt:     w.load(atSalt),
		created:  int64(w.load(atCreated)),
		identity: loadText(w, atIdentity, maxText/8),
		build:    loadText(w, atBuild, maxBuild/8),
		geometry: Geometry{
			Slots:     int(w.load(atSlots)),
			BlockSize: int(uint32(w.load(atBlock))),
			SubBlock:  int(w.load(atBlock) >> 32),
			Layout:    loadText(w, atLayout, maxText/8),
		},
	}
	if h.total != size {
		return header{}, fmt.Errorf("a file of %d bytes whose header says %d", size, h.total)
	}
	for i := range int(min(w.load(atCount), maxAreas)) {
		at := atAreas + i*areaWords
		h.offsets = append(h.offsets, int64(w.load(at+maxName/8)))
		h.geometry.Areas = append(h.geometry.Areas, Area{Name: loadText(w, at, maxName/8), Size: int64(w.load(at + maxName/8 + 1)), Node: -1})
	}
	return h, h.check()
}

// check finds areas that lie outside of the segment: a header with a right
// checksum may still be a forged one.
func (h header) check() error {
	if err := h.geometry.check(); err != nil {
		return err
	}
	free := int64(headWords+journalWords(h.geometry.Slots)) * 8
	for i, a := range h.geometry.Areas {
		if h.offsets[i] < free || h.offsets[i]%pageBytes != 0 || a.Size > h.total-h.offsets[i] {
			return fmt.Errorf("area %q of %d bytes at %d of %d", a.Name, a.Size, h.offsets[i], h.total)
		}
		free = h.offsets[i] + a.Size
	}
	if free > h.total {
		return fmt.Errorf("a journal that ends at %d of %d bytes", free, h.total)
	}
	return nil
}
