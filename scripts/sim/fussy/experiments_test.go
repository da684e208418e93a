package fussy

import (
	"testing"

	"lunar/scripts/sim/experiment/experimenttest"
)

// slow are the experiments that take too long with the race detector.
var slow = map[string]bool{"fussy-e": true, "fussy-l": true}

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments(), experimenttest.Exceptions{Slow: func(id string) bool { return slow[id] }})
}
