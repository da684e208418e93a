package fussy

import (
	"testing"

	"lunar/sim/experiment"
)

// slow are the experiments that take too long with the race detector.
var slow = map[string]bool{"fussy-e": true, "fussy-l": true}

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	for _, e := range Experiments() {
		t.Run(e.ID, func(t *testing.T) {
			if raceDetector && slow[e.ID] {
				t.Skip("too slow with the race detector; the simulator is one goroutine")
			}
			t.Parallel()
			result := e.Run(&experiment.Env{Seed: 1, Reduced: true})
			if len(result.Checks) == 0 {
				t.Error("checks nothing")
			}
			for _, c := range result.Checks {
				if c.Verdict == experiment.Fail {
					t.Errorf("%s: %s, expected %s (paper %s)", c.Name, c.Measured, c.Expected, c.Paper)
				}
			}
		})
	}
}
