// Package experiment says what a simulated experiment is: its set-up, the
// paper's value, the criterion, and the checks that a run makes. The packages
// that simulate list their experiments as values of Experiment; tgtsim
// runs and prints them.
package experiment

import (
	"fmt"
	"io"
)

// Experiment is one row of a paper's evaluation.
type Experiment struct {
	ID    string // stable name, such as haechi-2a-zipf
	Setup string // the paper's set-up in short
	Paper string // the paper's result
	Check string // what is checked here, and the criterion
	// Run makes the experiment; nil if it cannot be checked by simulation.
	Run func(*Env) Result
	// Excluded says why Run is nil.
	Excluded string
}

// Env is what a run gets from its caller.
type Env struct {
	Seed    uint64 // of every generator
	Reduced bool   // smaller sizes, for tests
	// Stub is the decision of the server's code that a stub takes the place of in this
	// run; "" is none. Checks that rest on it must fail then.
	Stub Decision
	// Log gets one line for each decision of the scheduler; nil keeps none.
	Log io.Writer
}

// Verdict says how a check ended.
type Verdict uint8

// The verdicts. Report marks a value that has no criterion, Differs one that misses
// the paper's, for a reason that its note gives.
const (
	Report Verdict = iota
	Pass
	Differs
	Fail
)

// String returns the word that a table of results prints.
func (v Verdict) String() string {
	return [...]string{Report: "report", Pass: "pass", Differs: "differs", Fail: "FAIL"}[v]
}

// Check is one line of a result.
type Check struct {
	Name     string // what was measured; the same whatever came out
	Paper    string // the paper's value, "" if it gives none
	Expected string // the criterion
	Measured string
	Verdict  Verdict
	Note     string // why a value deviates, "" mostly
	Kind     Kind
	Decision Decision // without which the check fails, of the kind Paper
}

// Result is the outcome of one run.
type Result struct {
	Checks  []Check
	Figures []Figure

	kind     Kind // of what is added next
	decision Decision
}

// Failed reports whether a check failed.
func (r *Result) Failed() bool {
	for i := range r.Checks {
		if r.Checks[i].Verdict == Fail {
			return true
		}
	}
	return false
}

// Add appends a check of the kind that was named last.
func (r *Result) Add(c Check) {
	c.Kind, c.Decision = r.kind, r.decision
	r.Checks = append(r.Checks, c)
}

// Require appends a check that passes if ok.
func (r *Result) Require(name, paper, expected, measured string, ok bool) {
	verdict := Fail
	if ok {
		verdict = Pass
	}
	r.Add(Check{Name: name, Paper: paper, Expected: expected, Measured: measured, Verdict: verdict})
}

// Near appends a check that measured is within tolerance (a share of want) of want.
func (r *Result) Near(name, paper string, measured, want, tolerance float64) {
	ok := measured >= want*(1-tolerance) && measured <= want*(1+tolerance)
	r.Require(name, paper, fmt.Sprintf("%s ±%s", Num(want), Percent(tolerance)), Num(measured), ok)
}

// AtLeast appends a check that measured is not below least.
func (r *Result) AtLeast(name, paper string, measured, least float64) {
	r.Require(name, paper, "≥"+Num(least), Num(measured), measured >= least)
}

// AtMost appends a check that measured is not above most.
func (r *Result) AtMost(name, paper string, measured, most float64) {
	r.Require(name, paper, "≤"+Num(most), Num(measured), measured <= most)
}

// Within appends a check that measured lies in [low, high].
func (r *Result) Within(name, paper string, measured, low, high float64) {
	r.Require(name, paper, Num(low)+" to "+Num(high), Num(measured), low <= measured && measured <= high)
}

// Note appends a value that has no criterion.
func (r *Result) Note(name, paper, measured, why string) {
	r.Add(Check{Name: name, Paper: paper, Measured: measured, Note: why})
}

// Claim appends the check of what a paper shows: it differs unless ok, for the reason
// why.
func (r *Result) Claim(name, paper, expected, measured string, ok bool, why string) {
	c := Check{Name: name, Paper: paper, Expected: expected, Measured: measured, Verdict: Pass}
	if !ok {
		c.Verdict, c.Note = Differs, why
	}
	r.Add(c)
}

// Invariants appends the check of the invariants that the run watched.
func (r *Result) Invariants(violations []string) {
	r.Model()
	measured := "held"
	if len(violations) > 0 {
		measured = fmt.Sprintf("%d broken, first: %s", len(violations), violations[0])
	}
	r.Require("invariants", "", "held", measured, len(violations) == 0)
}

// Figure is a plot of one of a paper's figures.
type Figure struct {
	Name   string // file name without its ending
	Title  string
	X, Y   string // axis titles with units
	LogX   bool
	LogY   bool
	Series []Series
}

// Series is one line of a figure.
type Series struct {
	Name   string
	Points []Point
}

// Point is one point of a line.
type Point struct{ X, Y float64 }

// Line makes a series of the values at x = first, first+1, ...
func Line(name string, first int, values []float64) Series {
	s := Series{Name: name, Points: make([]Point, len(values))}
	for i, v := range values {
		s.Points[i] = Point{float64(first + i), v}
	}
	return s
}

// Num prints a value with a precision that fits its size.
func Num(v float64) string {
	switch a := max(v, -v); {
	case a >= 100 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

// Percent prints a share as a percentage.
func Percent(share float64) string { return fmt.Sprintf("%.4g %%", share*100) }

// Try makes a Run of a function that may fail to set its experiment up: the error
// is a failed check.
func Try(run func(*Env, *Result) error) func(*Env) Result {
	return func(env *Env) (r Result) {
		if err := run(env, &r); err != nil {
			r.Wiring()
			r.Require("set-up", "", "no error", err.Error(), false)
		}
		return r
	}
}
