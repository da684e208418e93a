package plm

import (
	"testing"

	"lunar/scripts/sim/experiment/experimenttest"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}
