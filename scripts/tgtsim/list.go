package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/papers"
)

type listCmd struct{}

// Run prints every figure and table with its state, then every experiment with what it
// stands for.
func (listCmd) Run() error {
	if err := listItems(os.Stdout, papers.Items); err != nil {
		return err
	}
	fmt.Println()
	return list(os.Stdout, experiments())
}

func listItems(out io.Writer, items []papers.Item) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tFIGURE\tSHOWS\tSTATE\tEXPERIMENTS\tHOW, WHY")
	for _, it := range items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", it.Work, it.Name, it.Shows, it.State, dash(strings.Join(it.Experiments, " ")), dash(it.Why))
	}
	return w.Flush()
}

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
