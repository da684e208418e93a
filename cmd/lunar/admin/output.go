package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

// The forms of an answer.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

// output is how a command prints an answer.
type output struct {
	Output string `short:"o" enum:"table,json,yaml" default:"table" placeholder:"FORM" help:"Form of the output: table, json or yaml. The latter two are the answer of the control API."`
	JSON   bool   `name:"json" help:"The same as -o json."`
}

// form is the form that the flags ask for.
func (k *output) form() (string, error) {
	switch {
	case !k.JSON:
		return k.Output, nil
	case k.Output == asYAML:
		return "", usage(errors.New("found --json and -o yaml, expected one of them"))
	}
	return asJSON, nil
}

// usage is a mistake on the command line.
func usage(err error) error { return &cli.ExitError{Status: cli.ExitUsage, Err: err} }

// destructive is what was refused for want of a flag.
func destructive(format string, args ...any) error {
	return &cli.ExitError{Status: cli.ExitDestructive, Err: fmt.Errorf(format, args...)}
}

// printed prints the answer of the API at a path: as it is, as YAML, or as text makes of
// what it was decoded to.
func printed[T any](ctx context.Context, k *output, api *control.Client, c cli.Console, path string, text func(io.Writer, *T) error) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	raw, err := api.Raw(ctx, path)
	if err != nil {
		return err
	}
	if form != asTable {
		return document(c.Out, form, raw)
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return text(c.Out, &answer)
}

// document prints JSON in a form that programs read.
func document(w io.Writer, form string, raw []byte) error {
	if form == asYAML {
		var err error
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
	}
	_, err := w.Write(raw)
	return err
}

// selection is output of a list, of which flags choose rows and columns.
type selection struct {
	output   `embed:""`
	Sort     string   `placeholder:"COLUMN" help:"Sort by this column."`
	Reverse  bool     `help:"The other way round."`
	Filter   []string `sep:"none" placeholder:"CONDITION" help:"Only rows for which this holds: COLUMN=PATTERN or COLUMN!=PATTERN with * and ?, or COLUMN>NUMBER (<, >=, <=). Repeatable; all must hold."`
	Columns  []string `placeholder:"COLUMN" help:"Only these columns, with commas between."`
	Wide     bool     `help:"All columns."`
	NoHeader bool     `help:"Leave the heads of the columns out."`
}

func (k *selection) options() *listing.Options {
	return &listing.Options{Sort: k.Sort, Reverse: k.Reverse, Filter: k.Filter, Columns: k.Columns, Wide: k.Wide, NoHeader: k.NoHeader}
}

// rowsOf takes the rows of a table out of an answer, and makes an answer of rows.
type rowsOf[T, R any] struct {
	rows     func(*T) []R
	document func(*T, []R) any // the answer with what these rows are of alone
	table    listing.Table[R]
	below    func(w io.Writer, rows []R) // more about these rows, unless the flags choose columns; nil: nothing
}

// objectsListed are objects of the configuration.
func objectsListed(table listing.Table[control.ObjectResource]) rowsOf[control.ObjectList, control.ObjectResource] {
	return rowsOf[control.ObjectList, control.ObjectResource]{
		rows: func(l *control.ObjectList) []control.ObjectResource { return l.Objects },
		document: func(_ *control.ObjectList, rows []control.ObjectResource) any {
			return control.ObjectList{Objects: rows}
		},
		table: table,
	}
}

// list prints the rows of the answer at a path that the flags choose.
func list[T, R any](ctx context.Context, k *selection, api *control.Client, c cli.Console, path string, of rowsOf[T, R]) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	raw, err := api.Raw(ctx, path)
	if err != nil {
		return err
	}
	o := k.options()
	if form != asTable && !o.Selects() {
		return document(c.Out, form, raw)
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return of.print(c.Out, form, &answer, o)
}

// print prints the rows that the options choose.
func (of rowsOf[T, R]) print(w io.Writer, form string, answer *T, o *listing.Options) error {
	rows, err := of.table.Select(of.rows(answer), o)
	if err == nil && form == asTable {
		err = of.table.Write(w, rows, o)
		if of.below != nil && len(o.Columns) == 0 && !o.NoHeader {
			of.below(w, rows)
		}
	}
	if m := (*listing.Mistake)(nil); errors.As(err, &m) {
		return usage(err)
	}
	if err != nil || form == asTable {
		return err
	}
	raw, err := json.Marshal(of.document(answer, rows))
	if err != nil {
		return err
	}
	return document(w, form, append(raw, '\n'))
}

// section prints a table of a page below an empty line.
func section[R any](w io.Writer, t listing.Table[R], rows []R, per string) {
	fmt.Fprintln(w)
	t.Write(w, rows, &listing.Options{Per: per}) //nolint:errcheck // w is memory, and no column is named
}
