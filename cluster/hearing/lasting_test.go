package hearing

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// What is known is there at once, also again, and goes when it was away for long enough.
func TestLasting(t *testing.T) {
	l := Lasting[int]{For: 4 * time.Second}
	began := time.Now()
	for _, step := range []struct {
		at    time.Duration
		known map[string]int
		want  map[string]int
	}{
		{0, map[string]int{"a": 1}, map[string]int{"a": 1}},
		{1, map[string]int{"a": 1, "b": 1}, map[string]int{"a": 1, "b": 1}},
		{2, map[string]int{"a": 2}, map[string]int{"a": 2, "b": 1}},
		{4, map[string]int{"a": 2}, map[string]int{"a": 2, "b": 1}},
		{4, map[string]int{"b": 3}, map[string]int{"a": 2, "b": 3}},
		{7, map[string]int{"b": 3}, map[string]int{"a": 2, "b": 3}},
		{8, map[string]int{"b": 3}, map[string]int{"b": 3}},
		{20, map[string]int{"b": 4}, map[string]int{"b": 4}}, // nobody has looked in between
		{21, nil, map[string]int{"b": 4}},
		{24, nil, map[string]int{}},
	} {
		if got := l.See(began.Add(step.at*time.Second), step.known); !maps.Equal(got, step.want) {
			t.Errorf("after %d s: found %v of %v, expected %v", step.at, got, slices.Sorted(maps.Keys(got)), step.want)
		}
	}
}
