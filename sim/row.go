package sim

import "fmt"

// Row is one line of an experiment's result.
type Row struct {
	Experiment string
	What       string
	Paper      string // as published; "-" if nothing was
	Expected   string // the pass criterion; "-" if the row is only reported
	Measured   string
	Pass       bool
}

// String is the row as a line of a table.
func (r Row) String() string {
	verdict := "pass"
	if !r.Pass {
		verdict = "FAIL"
	}
	return fmt.Sprintf("%-5s %-46s | %-18s | %-20s | %-14s | %s", r.Experiment, r.What, r.Paper, r.Expected, r.Measured, verdict)
}

// within makes a row of a value that must lie in [low, high].
func within(experiment, what, paper, format string, value, low, high float64) Row {
	return Row{
		Experiment: experiment, What: what, Paper: paper,
		Expected: fmt.Sprintf(format+" to "+format, low, high),
		Measured: fmt.Sprintf(format, value),
		Pass:     low <= value && value <= high,
	}
}

// report makes a row of a value that is only shown.
func report(experiment, what, paper, format string, value float64) Row {
	return Row{experiment, what, paper, "-", fmt.Sprintf(format, value), true}
}
