package net

import (
	"testing"

	"lunar/scripts/sim/experiment/experimenttest"
)

// slow are the experiments that take too long with the race detector.
var slow = map[string]bool{"qtcp-dtm": true, "qtcp-dctcp": true, "qrdma-share": true, "qrdma-coexist": true, "qtcp-lat": true, "qrdma-lat": true}

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments(), experimenttest.Exceptions{Slow: func(id string) bool { return slow[id] }})
}
