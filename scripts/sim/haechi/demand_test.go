package haechi

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBacklog: requests leave in the order in which they came, none is lost.
func TestBacklog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b backlog
		var want []int64
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				now += rapid.Int64Range(0, 2).Draw(t, "later")
				n := rapid.Int64Range(1, 3).Draw(t, "count")
				b.push(now, n)
				for range n {
					want = append(want, now)
				}
			} else if len(want) > 0 {
				if got := b.pop(); got != want[0] {
					t.Fatalf("popped the request of %d, expected %d", got, want[0])
				}
				want = want[1:]
			}
			if b.count != int64(len(want)) {
				t.Fatalf("holds %d requests, expected %d", b.count, len(want))
			}
		}
	})
}
