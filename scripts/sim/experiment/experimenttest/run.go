// Package experimenttest is the test that every table of experiments must pass.
package experimenttest

import (
	"testing"

	"lunar/internal/racetest"
	"lunar/scripts/sim/experiment"
)

// Run runs the reduced size of every experiment, each of which must meet its
// criteria. One that cannot be run must say why. With the race detector none is run: a
// simulator is one goroutine, and `make simulation` runs all.
func Run(t *testing.T, table []experiment.Experiment) {
	t.Helper()
	for _, e := range table {
		t.Run(e.ID, func(t *testing.T) {
			switch {
			case e.Run == nil:
				if e.Excluded == "" {
					t.Error("neither a run nor a reason why not")
				}
				return
			case racetest.Enabled:
				t.Skip("slow with the race detector; make simulation runs it without")
			}
			t.Parallel()
			judge(t, e)
		})
	}
}

func judge(t *testing.T, e experiment.Experiment) {
	result := e.Run(&experiment.Env{Seed: 1, Reduced: true})
	if len(result.Checks) == 0 {
		t.Error("checks nothing")
	}
	for _, c := range result.Checks {
		if c.Verdict != experiment.Report && c.Kind.String() == "" {
			t.Errorf("%s has no kind", c.Name)
		}
		if c.Verdict == experiment.Fail {
			t.Errorf("%s: %s, expected %s (paper %s)", c.Name, c.Measured, c.Expected, c.Paper)
		}
	}
}
