package overview

import (
	"fmt"

	"lunar/control"
)

// mostTold is how many answers of a kind are told one by one.
const mostTold = 5

// told is answers of a kind, of which the first ones are told and the others counted.
type told struct {
	out  []control.Answer
	left int
	more string // what there is more of
}

// room reports whether another one is to be told; if not, it counts.
func (t *told) room() bool {
	if len(t.out) < mostTold {
		return true
	}
	t.left++
	return false
}

func (t *told) add(a control.Answer) { t.out = append(t.out, a) }

func (t *told) all() []control.Answer {
	if t.left > 0 {
		last := t.out[len(t.out)-1]
		t.add(control.Answer{Severity: last.Severity, Kind: last.Kind, What: fmt.Sprintf("%d %s.", t.left, t.more)})
	}
	return t.out
}
