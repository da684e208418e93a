// Package experimenttest is the test that every table of experiments must pass.
package experimenttest

import (
	"testing"

	"lunar/scripts/sim/experiment"
)

// Exceptions are what a table's test leaves out.
type Exceptions struct {
	// Slow reports whether an experiment takes too long with the race detector;
	// nil: none does.
	Slow func(id string) bool
	// Known are the checks that may fail, by "ID name", and why.
	Known map[string]string
}

// Run runs the reduced size of every experiment, each of which must meet its
// criteria. One that cannot be run must say why.
func Run(t *testing.T, table []experiment.Experiment, x Exceptions) {
	t.Helper()
	for _, e := range table {
		t.Run(e.ID, func(t *testing.T) {
			switch {
			case e.Run == nil:
				if e.Excluded == "" {
					t.Error("neither a run nor a reason why not")
				}
				return
			case RaceDetector && x.Slow != nil && x.Slow(e.ID):
				t.Skip("too slow with the race detector; the simulator is one goroutine")
			}
			t.Parallel()
			judge(t, e, x.Known)
		})
	}
}

func judge(t *testing.T, e experiment.Experiment, known map[string]string) {
	result := e.Run(&experiment.Env{Seed: 1, Reduced: true})
	if len(result.Checks) == 0 {
		t.Error("checks nothing")
	}
	for _, c := range result.Checks {
		if c.Verdict != experiment.Report && c.Kind.String() == "" {
			t.Errorf("%s has no kind", c.Name)
		}
		if _, expected := known[e.ID+" "+c.Name]; c.Verdict == experiment.Fail && !expected {
			t.Errorf("%s: %s, expected %s (paper %s)", c.Name, c.Measured, c.Expected, c.Paper)
		}
	}
}
