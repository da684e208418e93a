package top

import (
	"context"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"

	"lunar/cmd/lunar/clustertable"
	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/iscsiname"
)

// Terminal is where a screen is shown.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string // as os.Environ: TERM, NO_COLOR
	Colours bool
}

// Run shows what ask tells until somebody quits or ctx ends.
func Run(ctx context.Context, at Terminal, ask func(context.Context) (control.Overview, error)) error {
	m := newModel(func() tea.Msg {
		o, err := ask(ctx)
		return answer{o, err}
	}, at.Colours)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(at.In), tea.WithOutput(at.Out), tea.WithEnvironment(at.Environ)).Run()
	if ctx.Err() != nil {
		return nil // somebody interrupted it
	}
	return err
}

// Once writes an overview as text.
func Once(w io.Writer, o *control.Overview) error {
	fmt.Fprintln(w, iscsiname.Printable(o.Line))
	m := model{overview: o}
	fmt.Fprintln(w, m.totals())
	fmt.Fprintln(w)
	for _, l := range answerLines(o.Answers, true) {
		fmt.Fprintln(w, l.text)
	}
	for _, write := range []func(io.Writer) error{
		section(initiatorTable, o.Initiators), section(useTable, o.Uses), section(volumeTable, o.Volumes), section(promiseTable, o.Promises),
		section(ruleTable, o.Rules), section(threadTable, o.Threads), section(deviceTable, o.Devices),
	} {
		if err := write(w); err != nil {
			return err
		}
	}
	if err := onceCluster(w, o.Cluster); err != nil || o.Cache == nil {
		return err
	}
	fmt.Fprintln(w, "\nCACHE")
	for _, l := range cachePart(o.Cache).lines[:4] {
		fmt.Fprintln(w, l.text)
	}
	return section(nodeTable, o.Cache.Nodes)(w)
}

// onceCluster writes the cluster, if there is one.
func onceCluster(w io.Writer, c *control.Cluster) error {
	if c == nil {
		return nil
	}
	fmt.Fprintln(w, "\nCLUSTER")
	for _, l := range clustertable.Lines(c) {
		fmt.Fprintln(w, iscsiname.Printable(l.Text))
	}
	for _, write := range []func(io.Writer) error{section(clustertable.Nodes, c.Nodes), section(clustertable.Volumes, c.Volumes)} {
		if err := write(w); err != nil {
			return err
		}
	}
	if c.Promise == nil {
		return nil
	}
	return section(clustertable.Parts, c.Promise.Nodes)(w)
}

// section writes a table below an empty line, if it has rows.
func section[R any](t listing.Table[R], rows []R) func(io.Writer) error {
	return func(w io.Writer) error {
		if len(rows) == 0 {
			return nil
		}
		fmt.Fprintln(w)
		return t.Write(w, rows, &listing.Options{})
	}
}
