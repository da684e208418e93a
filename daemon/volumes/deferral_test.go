package volumes

import (
	"errors"
	"fmt"
	"testing"
)

// heard is a unit that notes what it is told.
type heard []string

func (h *heard) DeferredError(off int64, err error) { *h = append(*h, fmt.Sprint(off, err)) }

// TestDeferral: a failure reaches the unit, also one from before it was made.
func TestDeferral(t *testing.T) {
	var early, late deferral
	var h heard
	early.report(4096, errors.New("early"))
	early.bind(&h)
	late.bind(&h)
	late.report(8192, errors.New("late"))
	if got := fmt.Sprint(h); got != "[4096 early 8192 late]" {
		t.Errorf("found %s", got)
	}
}
