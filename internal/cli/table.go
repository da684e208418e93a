package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"lunar/internal/iscsiname"
)

// Table prints rows of columns that are parted by tabs.
func Table(w io.Writer, head string, rows []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\n", head)
	for _, row := range rows {
		fmt.Fprintln(t, row)
	}
	t.Flush()
}

// Row joins columns, none of which changes the terminal or the table.
func Row(columns ...any) string {
	var out []string
	for _, c := range columns {
		out = append(out, iscsiname.Printable(fmt.Sprint(c)))
	}
	return strings.Join(out, "\t")
}

// Counted is a number with its noun, in the plural unless it is one.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
