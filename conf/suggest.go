package conf

import (
	"fmt"
	"strings"
)

// listed is how many names a message lists at most.
const listed = 32

// suggestion says which keys are known, and which one was probably meant.
func suggestion(name string, known []string) string {
	all := "one of " + strings.Join(known[:min(len(known), listed)], ", ")
	if more := len(known) - listed; more > 0 {
		all += fmt.Sprintf(" and %d more", more)
	}
	if best, ok := nearest(name, known); ok {
		return all + "; did you mean " + best + "?"
	}
	return all
}

// Similar is the candidate that a name was probably meant to be.
func Similar(name string, candidates []string) (string, bool) { return nearest(name, candidates) }

// nearest is the candidate that needs the fewest edits, if those are few for
// the length of the name.
func nearest(name string, candidates []string) (string, bool) {
	best, fewest := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if apart := len(name) - len(c); max(apart, -apart) >= fewest {
			continue
		}
		if n := edits(strings.ToLower(name), c); n < fewest {
			best, fewest = c, n
		}
	}
	return best, best != ""
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(above+1, row[j]+1, change)
			diagonal = above
		}
	}
	return row[len(b)]
}
