package main

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"lunar/internal/racetest"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/papers"
)

// reduced are the results of all experiments at their reduced size.
var reduced = sync.OnceValue(func() map[string]*experiment.Result {
	var all sync.WaitGroup
	var mu sync.Mutex
	results, turns := map[string]*experiment.Result{}, make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, e := range experiments() {
		if e.Run == nil {
			continue
		}
		all.Go(func() {
			turns <- struct{}{}
			r := e.Run(&experiment.Env{Seed: 1, Reduced: true})
			<-turns
			mu.Lock()
			defer mu.Unlock()
			results[e.ID] = &r
		})
	}
	all.Wait()
	return results
})

func skipSlow(t *testing.T) {
	t.Helper()
	if racetest.Enabled {
		t.Skip("too slow with the race detector; make simulation runs it without")
	}
}

// TestPaperChecksNeedTheDecision: with a stub in the place of the decision that a check
// of the kind paper rests on, the check does not pass.
func TestPaperChecksNeedTheDecision(t *testing.T) {
	skipSlow(t)
	for _, e := range experiments() {
		base := reduced()[e.ID]
		if base == nil {
			continue
		}
		for _, d := range decisionsOf(base) {
			t.Run(e.ID+"/"+string(d), func(t *testing.T) {
				t.Parallel()
				stubbed := e.Run(&experiment.Env{Seed: 1, Reduced: true, Stub: d})
				for i, c := range base.Checks {
					if c.Decision != d || c.Verdict != experiment.Pass {
						continue
					}
					if i >= len(stubbed.Checks) || stubbed.Checks[i].Name != c.Name {
						t.Fatalf("with the stub check %d is not %q", i, c.Name)
					}
					if s := stubbed.Checks[i]; s.Verdict == experiment.Pass {
						t.Errorf("%s: %s with the stub passes, too (expected %s, without the stub %s)", c.Name, s.Measured, c.Expected, c.Measured)
					}
				}
			})
		}
	}
}

// decisionsOf are the decisions that checks rest on that passed.
func decisionsOf(r *experiment.Result) (all []experiment.Decision) {
	for _, c := range r.Checks {
		if c.Kind == experiment.Paper && c.Verdict == experiment.Pass && !slices.Contains(all, c.Decision) {
			all = append(all, c.Decision)
		}
	}
	return all
}

// TestNothingFails: every experiment meets its criteria, and every check has a kind.
func TestNothingFails(t *testing.T) {
	skipSlow(t)
	for id, r := range reduced() {
		if len(r.Checks) == 0 {
			t.Errorf("%s checks nothing", id)
		}
		for _, c := range r.Checks {
			if c.Verdict == experiment.Fail {
				t.Errorf("%s: %s: %s, expected %s", id, c.Name, c.Measured, c.Expected)
			}
			if c.Verdict != experiment.Report && (c.Kind.String() == "" || (c.Kind == experiment.Paper) != (c.Decision != "")) {
				t.Errorf("%s: %s is of kind %q and rests on %q", id, c.Name, c.Kind, c.Decision)
			}
			if c.Verdict == experiment.Differs && (c.Note == "" || c.Paper == "") {
				t.Errorf("%s: %s differs, and there is no paper's value or no reason", id, c.Name)
			}
		}
	}
}

// TestStatesOfFigures: what is said of a figure follows from its checks.
func TestStatesOfFigures(t *testing.T) {
	skipSlow(t)
	for _, it := range papers.Items {
		if (it.Why == "") != (it.State == papers.Reproduced) {
			t.Errorf("%s, %s: %s with the reason %q", it.Work, it.Name, it.State, it.Why)
		}
		tally := it.Count(reduced())
		state, decided := papers.StateOf(tally)
		if !decided && it.State == papers.NotYet {
			state = papers.NotYet
		}
		if state != it.State && !it.Full {
			t.Errorf("%s, %s is said to be %s, expected %s: %+v", it.Work, it.Name, it.State, state, tally)
		}
	}
}

// TestEveryExperimentBelongsToAFigure: none is run for nothing, and none is named that
// there is not.
func TestEveryExperimentBelongsToAFigure(t *testing.T) {
	known := map[string]bool{"events-batching": true, "pshift-real": true, "pshift-nodes": true, "pshift-nodes-image": true} // of no paper; runs of qos.md; over nodes
	for _, it := range papers.Items {
		for _, id := range it.Experiments {
			known[id] = true
			if !slices.ContainsFunc(experiments(), func(e experiment.Experiment) bool { return e.ID == id }) {
				t.Errorf("%s, %s names experiment %s, which there is not", it.Work, it.Name, id)
			}
		}
	}
	for _, e := range experiments() {
		if !known[e.ID] {
			t.Errorf("%s belongs to no figure", e.ID)
		}
	}
}

// TestPage: the tables of the documentation are those of these results.
func TestPage(t *testing.T) {
	skipSlow(t)
	const name = "../../docs/reports/simulation.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page, err := withTables(string(text), reduced())
	if err != nil {
		t.Fatal(err)
	}
	if page != string(text) {
		t.Errorf("%s is not what `tgtsim page` writes: run `make simulation-page`", name)
	}
}
