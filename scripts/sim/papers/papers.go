// Package papers lists the figures and tables of the works that the scheduler and the
// cache follow, each with what became of it here. Where a work numbers nothing that could
// be cited, its experiment stands for its figures.
package papers

import (
	"slices"
	"strings"

	"lunar/scripts/sim/experiment"
)

// State is what became of a figure or table.
type State uint8

// The states.
const (
	// Reproduced: decisions of the server's code bring out what it shows.
	Reproduced State = iota
	// Differs: at least one value that it shows does not come out.
	Differs
	// NotCheckable: nothing that can be run here would test a decision of ours.
	NotCheckable
	// NotYet: it could be checked, and is not.
	NotYet
)

// String is the state in words.
func (s State) String() string {
	return [...]string{Reproduced: "reproduced", Differs: "differs", NotCheckable: "not checkable here", NotYet: "not yet"}[s]
}

// Item is a figure, a table or an experiment of a work.
type Item struct {
	Work        string
	Name        string
	Shows       string
	State       State
	Why         string   // how it differs, or why it is not checked; "" if it is reproduced
	Experiments []string // identifiers of what is run for it
	Only        string   // what the names of its checks contain; "" is all of the experiments
	Full        bool     // its checks have a criterion at full size only
}

// The works.
const (
	Haechi = "Haechi"
	PShift = "pShift"
	Tyche  = "Tyche"
	Ren    = "Ren, dissertation"
	E2E    = "End-to-end thesis"
)

// Count counts an item's checks in the results of experiments.
func (it *Item) Count(results map[string]*experiment.Result) (t experiment.Tally) {
	t.Count(&experiment.Result{})
	for _, id := range it.Experiments {
		r := results[id]
		if r == nil {
			continue
		}
		part := experiment.Result{Checks: slices.Clone(r.Checks)}
		part.Checks = slices.DeleteFunc(part.Checks, func(c experiment.Check) bool { return !strings.Contains(c.Name, it.Only) })
		t.Count(&part)
	}
	return t
}

// StateOf is the state that follows from a count: false if none does, because nothing
// tests a decision.
func StateOf(t experiment.Tally) (State, bool) {
	switch {
	case t.Differs > 0:
		return Differs, true
	case t.Passed[experiment.Paper] > 0:
		return Reproduced, true
	}
	return NotCheckable, false
}
