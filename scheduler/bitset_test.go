package scheduler

import (
	"math/rand/v2"
	"testing"
)

// TestBitset: it has what was added and not removed, and finds who is next, with
// one word, several, and more than a summary word has.
func TestBitset(t *testing.T) {
	for _, size := range []int{1, 64, 65, 300, 3 * 4096} {
		rng := rand.New(rand.NewPCG(1, uint64(size)))
		b, model := bitset{}, make([]bool, size)
		b.grow(size)
		for range 2000 {
			i := rng.IntN(size)
			if rng.IntN(2) == 0 {
				b.add(i)
				model[i] = true
			} else {
				b.remove(i)
				model[i] = false
			}
			checkBitset(t, &b, model, rng.IntN(size+1))
		}
		for i := range model { // few members, far from each other
			if b.remove(i); rng.IntN(size) > 2 {
				model[i] = false
			} else {
				b.add(i)
				model[i] = true
			}
		}
		for i := 0; i <= size; i += 1 + size/500 {
			checkBitset(t, &b, model, i)
		}
	}
}

func checkBitset(t *testing.T, b *bitset, model []bool, at int) {
	t.Helper()
	from, first, count := -1, -1, 0
	for i := len(model) - 1; i >= 0; i-- {
		if model[i] {
			first = i
			count++
			if i >= at {
				from = i
			}
		}
	}
	next := from
	if next < 0 {
		next = first
	}
	if b.count != count || b.from(at) != from || b.next(at) != next || at < len(model) && b.has(at) != model[at] {
		t.Fatalf("size %d at %d: found count %d, from %d, next %d; expected %d, %d, %d", len(model), at, b.count, b.from(at), b.next(at), count, from, next)
	}
}
