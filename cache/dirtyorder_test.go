package cache

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The order finds what a sorted list finds.
func TestDirtyOrder(t *testing.T) {
	o, random := newDirtyOrder(), rand.New(rand.NewPCG(1, 2))
	var list []Key
	compare := func(a, b Key) int {
		switch {
		case a == b:
			return 0
		case a.less(b):
			return -1
		}
		return 1
	}
	for range 20000 {
		k := Key{LU: random.Uint32N(3), Block: random.Uint64N(700)}
		if random.IntN(9) == 0 {
			k.Block = math.MaxUint64 - k.Block
		}
		at, found := slices.BinarySearchFunc(list, k, compare)
		if first, ok := o.from(k); ok != (at < len(list)) || ok && first != list[at] {
			t.Fatalf("from %v: found %v, %t", k, first, ok)
		}
		if last, ok := o.before(k); ok != (at > 0) || ok && last != list[at-1] {
			t.Fatalf("before %v: found %v, %t", k, last, ok)
		}
		if found {
			o.remove(k)
			list = slices.Delete(list, at, at+1)
		} else {
			o.insert(k)
			list = slices.Insert(list, at, k)
		}
	}
	for _, k := range list {
		o.remove(k)
	}
	if _, ok := o.from(Key{}); ok || o.root != 0 {
		t.Error("the order is not empty after everything was removed")
	}
}

// The shape does not depend on addresses, which initiators choose.
func TestDirtyOrderStaysFlat(t *testing.T) {
	const stretches = 1 << 14
	o := newDirtyOrder()
	// An initiator that knew the seed 0 would choose addresses in the order of priorities.
	places := make([]uint32, stretches)
	for i := range places {
		places[i] = uint32(i + 1)
	}
	var known dirtyOrder
	slices.SortFunc(places, func(a, b uint32) int {
		if known.above(a, b) {
			return -1
		}
		return 1
	})
	rank := make([]uint64, stretches)
	for i, place := range places {
		rank[place-1] = uint64(i)
	}
	for _, number := range rank {
		o.insert(Key{Block: number << stretchBits})
	}
	if found, most := o.depth(o.root), 64; found > most {
		t.Errorf("found a depth of %d with %d stretches, expected at most %d", found, stretches, most)
	}
}

func (o *dirtyOrder) depth(at uint32) int {
	if at == 0 {
		return 0
	}
	return 1 + max(o.depth(o.stretches[at].left), o.depth(o.stretches[at].right))
}
