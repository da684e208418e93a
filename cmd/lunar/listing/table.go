// Package listing prints lists as tables whose columns are data: a name and where its
// value comes from. Rows are sorted and filtered by column, so that what a person picks
// out and what a script picks out are the same.
package listing

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"lunar/internal/iscsiname"
)

// Column is a column of a table of rows R.
type Column[R any] struct {
	// Name is what --sort, --filter and --columns take, and in upper case the head. It
	// has no spaces and does not change between versions.
	Name string
	// Of returns the value of a row: a number, Bytes, Share, bool, time.Time, string or
	// list of strings; nil: the row has none.
	Of func(*R) any
	// Counts says that the value only grows, so that --watch shows it per second.
	Counts bool
	// Wide columns are shown only when they are asked for.
	Wide bool
}

// Table is the columns of a list, in order.
type Table[R any] []Column[R]

// Options choose from a table. The zero value shows all rows and all columns that are
// not wide.
type Options struct {
	Sort     string   // name of a column; empty: as the rows come
	Reverse  bool     // the other way round
	Filter   []string // conditions, all of which must hold
	Columns  []string // names of those to show; none: all that are not wide
	Wide     bool     // all columns
	NoHeader bool     // rows alone
	Per      string   // follows the heads of columns that count
}

// Selects reports whether the options leave out or move rows.
func (o *Options) Selects() bool { return o.Sort != "" || o.Reverse || len(o.Filter) > 0 }

// Mistake is an option that does not fit the table.
type Mistake struct{ text string }

// Error implements error.
func (m *Mistake) Error() string { return m.text }

func mistake(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...)} }

// Names returns the names of all columns.
func (t Table[R]) Names() []string {
	var names []string
	for i := range t {
		names = append(names, t[i].Name)
	}
	return names
}

// column finds a column; flag is for the error, which is a *Mistake.
func (t Table[R]) column(flag, name string) (*Column[R], error) {
	for i := range t {
		if strings.EqualFold(t[i].Name, name) {
			return &t[i], nil
		}
	}
	return nil, mistake("--%s: found %q, expected one of the columns %s", flag, name, strings.Join(t.Names(), ", "))
}

// Select returns the rows that meet all conditions, in the order that is asked for. An
// error is a *Mistake.
func (t Table[R]) Select(rows []R, o *Options) ([]R, error) {
	rows = slices.Clone(rows)
	for _, text := range o.Filter {
		c, err := t.condition(text)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r R) bool { return !c(&r) })
	}
	if o.Sort != "" {
		by, err := t.column("sort", o.Sort)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows, func(a, b R) int { return compare(by.Of(&a), by.Of(&b)) })
	}
	if o.Reverse {
		slices.Reverse(rows)
	}
	return rows, nil
}

// shown are the columns that the options choose.
func (t Table[R]) shown(o *Options) (out Table[R], err error) {
	for _, name := range o.Columns {
		c, err := t.column("columns", name)
		if err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	if out != nil {
		return out, nil
	}
	return slices.DeleteFunc(slices.Clone(t), func(c Column[R]) bool { return c.Wide && !o.Wide }), nil
}

// Write prints rows, as Select has left them, below the heads of their columns. An error
// that is a *Mistake has printed nothing.
func (t Table[R]) Write(w io.Writer, rows []R, o *Options) error {
	columns, err := t.shown(o)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	tabs := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
	if !o.NoHeader {
		for i, c := range columns {
			head := strings.ToUpper(c.Name)
			if c.Counts {
				head += o.Per
			}
			cell(tabs, i, head)
		}
		fmt.Fprintln(tabs)
	}
	for r := range rows {
		for i, c := range columns {
			cell(tabs, i, Text(c.Of(&rows[r])))
		}
		fmt.Fprintln(tabs)
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(page.Bytes()) { // the last column's padding is nobody's
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// cell writes one, which changes neither the terminal nor the table.
func cell(w io.Writer, i int, text string) {
	if i > 0 {
		fmt.Fprint(w, "\t")
	}
	fmt.Fprint(w, iscsiname.Printable(text))
}
