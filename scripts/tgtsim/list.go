package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"lunar/scripts/sim/experiment"
)

type listCmd struct{}

// Run prints every experiment with what it stands for.
func (listCmd) Run() error { return list(os.Stdout, experiments()) }

func list(out io.Writer, all []experiment.Experiment) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSET-UP\tPAPER\tCHECK")
	for i := range all {
		e := &all[i]
		check := e.Check
		if e.Run == nil {
			check = "not checkable: " + e.Excluded
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.ID, e.Setup, e.Paper, check)
	}
	return w.Flush()
}
