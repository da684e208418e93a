package windows

import (
	"encoding/binary"
	"math/bits"
)

// regionsMost bounds the regions of a volume: a bit for each of them is 4 KiB.
const regionsMost = 1 << 15

// regionLeast is the smallest region, in bytes.
const regionLeast = 1 << 20

// regionShift returns the logarithm of a region's size.
func regionShift(size int64) (shift int) {
	for shift = bits.Len64(regionLeast) - 1; (size+1<<shift-1)>>shift > regionsMost; shift++ {
	}
	return shift
}

// regions are a set of regions. The zero value is empty.
type regions [regionsMost / 64]uint64

func (r *regions) has(i int64) bool { return r[i/64]>>(i%64)&1 != 0 }
func (r *regions) add(i int64)      { r[i/64] |= 1 << (i % 64) }
func (r *regions) drop(i int64)     { r[i/64] &^= 1 << (i % 64) }
func (r *regions) empty() bool      { return *r == regions{} }

func (r *regions) count() (n int) {
	for _, w := range r {
		n += bits.OnesCount64(w)
	}
	return n
}

// join adds all of another set.
func (r *regions) join(o *regions) {
	for i, w := range o {
		r[i] |= w
	}
}

// scale makes regions of another size of them: whoever had a part of one has all of it.
func (r *regions) scale(from, to int) {
	if from == to {
		return
	}
	old := *r
	*r = regions{}
	for i := range int64(regionsMost) {
		if !old.has(i) {
			continue
		}
		for at := i << from >> to; at < min(regionsMost, ((i+1)<<from-1)>>to+1); at++ {
			r.add(at)
		}
	}
}

// fit makes them regions of a volume that has become as large as to, in bytes: those behind
// its end go.
func (r *regions) fit(from, to int64) {
	shift := regionShift(to)
	r.scale(regionShift(from), shift)
	for i := (to-1)>>shift + 1; i < regionsMost; i++ {
		r.drop(i)
	}
}

// resize does that, and adds those with what is new.
func (r *regions) resize(from, to int64) {
	r.fit(from, to)
	r.span(from, to)
}

// span adds the regions of a volume of end bytes that begin at from or have it.
func (r *regions) span(from, end int64) {
	shift := regionShift(end)
	for i := from >> shift; from < end && i <= (end-1)>>shift; i++ {
		r.add(i)
	}
}

// fill adds the first n.
func (r *regions) fill(n int64) {
	for i := range n {
		r.add(i)
	}
}

func (r *regions) encode(b []byte) {
	for i, w := range r {
		binary.LittleEndian.PutUint64(b[i*8:], w)
	}
}

func (r *regions) decode(b []byte) {
	for i := range r {
		r[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
}
