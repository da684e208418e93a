package segment

import "fmt"

// contents is what a segment says, decoded and checked.
type contents struct {
	header header
	state  state
	torn   bool    // the other copy of the state
	dirty  []Range // by volume and block; no sub-block twice
	stale  []Range // marks that newer slots have taken over
	last   uint64  // highest sequence
}

// clean reports that the last process ended in order.
func (c contents) clean() bool { return c.state.status == statusClean && !c.torn }

// dirtyBytes is how much is not in the backing store.
func (c contents) dirtyBytes() int64 {
	return subBlocks(c.dirty) * int64(c.header.geometry.SubBlock)
}

// inspect reads a segment of size bytes. It only reads; whatever the bytes are,
// it returns what is sound or says what is not.
func inspect(w words, size int64) (contents, *Refused) {
	if size < headWords*8 {
		return contents{}, refuse(Foreign, "a cache segment", "a file of %d bytes", size)
	}
	if m := w.load(atMagic); m != magic {
		return contents{}, refuse(Foreign, "a cache segment", "a file that begins with %#x", m)
	}
	if f := w.load(atFormat); f != format {
		c := contents{header: header{build: loadText(w, atBuild, maxBuild/8)}}
		return c, refuse(Version, fmt.Sprintf("format %d", format), "format %d, written by version %q", f, c.header.build)
	}
	h, err := readHeader(w, size)
	if err != nil {
		return contents{}, refuse(Damaged, "a sound header", "%v", err)
	}
	s, torn, ok := readState(w)
	if !ok {
		return contents{}, refuse(Damaged, "a sound state", "two copies of the state with wrong checksums")
	}
	return readJournal(w, contents{header: h, state: s, torn: torn})
}

func readJournal(w words, c contents) (contents, *Refused) {
	journal := Journal{w: w, slots: uint32(c.header.geometry.Slots), salt: c.header.salt}
	ranges, damaged := journal.scan()
	if len(damaged) > 0 {
		return c, refuse(Damaged, "a sound journal of dirty ranges",
			"%d of %d records with wrong checksums, the first of slot %d", len(damaged), len(ranges)+len(damaged), damaged[0])
	}
	for _, r := range ranges {
		c.last = max(c.last, r.Sequence)
		if width := c.header.geometry.BlockSize / c.header.geometry.SubBlock; width < 64 && r.Mask>>width != 0 {
			return c, refuse(Damaged, fmt.Sprintf("dirty bits of %d sub-blocks", width), "dirty bits %#x of slot %d", r.Mask, r.Slot)
		}
	}
	c.dirty, c.stale = resolve(ranges)
	return c, nil
}

// admit compares a sound segment with what this process needs.
func (c contents) admit(identity string, want Geometry) *Refused {
	if c.header.identity != identity {
		r := refuse(Identity, fmt.Sprintf("server %q", identity), "server %q", c.header.identity)
		r.Dirty = c.dirtyBytes()
		return r
	}
	if found, expected, differs := c.header.geometry.difference(want); differs {
		r := refuse(Changed, expected, "%s", found)
		r.Dirty = c.dirtyBytes()
		return r
	}
	return nil
}

// adopt makes a sound segment that of this process: marks that newer slots took
// over go, so that they cannot come back, and the state says open.
func (c contents) adopt(w words, build string, process uint32) (*Journal, state) {
	j := &Journal{w: w, slots: uint32(c.header.geometry.Slots), salt: c.header.salt}
	j.sequence.Store(c.last)
	for _, r := range c.stale {
		j.MarkClean(r.Slot, r.Mask)
	}
	s := state{generation: c.state.generation + 1, status: statusOpen, build: build, process: process}
	s.write(w)
	return j, s
}

// lay writes a new segment into zeroed words.
func lay(w words, h header, process uint32) (*Journal, state) {
	h.write(w)
	return contents{header: h}.adopt(w, h.build, process)
}
