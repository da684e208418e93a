package bqueue

import (
	"slices"
	"testing"
)

// TestSolve: the second and third example of the pShift paper.
func TestSolve(t *testing.T) {
	for _, c := range []struct {
		p         Problem
		effective int64
		tokens    []int64
	}{
		{Problem{[]int64{100, 100}, []int64{150, 50, 50, 50}, []int64{100, 100}}, 200, []int64{50, 50, 50, 50}},
		{Problem{[]int64{100, 100, 100}, []int64{150, 50, 0, 0, 150, 50, 50, 0, 50}, []int64{100, 100, 100}}, 300, nil},
		{Problem{[]int64{100, 100}, []int64{100, 100}, []int64{100}}, 100, []int64{100, 100}},
	} {
		tokens, effective := Solve(c.p)
		if effective != c.effective || c.tokens != nil && !slices.Equal(tokens, c.tokens) {
			t.Errorf("found %d with %v, expected %d with %v", effective, tokens, c.effective, c.tokens)
		}
	}
}
