package top

import (
	"slices"
	"strings"
	"unicode/utf8"

	"lunar/cmd/lunar/listing"
)

// sheet is a table as text, with what its rows are.
type sheet struct {
	heads  []string
	right  []bool // columns of numbers
	rows   [][]string
	keys   []string // what a row is about; empty: nothing more can be said of it
	tones  []tone   // of rows
	sorted int      // column; -1: as the server has the rows
}

// order is how a table is sorted.
type order struct {
	column  string // empty: as the server has the rows
	reverse bool
}

// sheetOf makes a sheet of rows. about and toneOf may be nil.
func sheetOf[R any](t listing.Table[R], rows []R, by order, about func(*R) string, toneOf func(*R) tone) sheet {
	selected, err := t.Select(rows, &listing.Options{Sort: by.column, Reverse: by.column != "" && !by.reverse})
	if err == nil {
		rows = selected
	}
	s := sheet{sorted: -1}
	for i, c := range t {
		s.heads = append(s.heads, strings.ToUpper(c.Name))
		s.right = append(s.right, len(rows) > 0)
		if c.Name == by.column {
			s.sorted = i
		}
	}
	for r := range rows {
		var cells []string
		for i, c := range t {
			v := c.Of(&rows[r])
			cells = append(cells, listing.Text(v))
			s.right[i] = s.right[i] && (v == nil || listing.IsNumber(v))
		}
		key, of := "", plain
		if about != nil {
			key = about(&rows[r])
		}
		if toneOf != nil {
			of = toneOf(&rows[r])
		}
		s.rows, s.keys, s.tones = append(s.rows, cells), append(s.keys, key), append(s.tones, of)
	}
	return s
}

// only leaves out the rows without a cell that a filter fits.
func (s *sheet) only(filter string) {
	kept := 0
	for i, cells := range s.rows {
		if slices.ContainsFunc(cells, func(text string) bool { return fits(text, filter) }) {
			s.rows[kept], s.keys[kept], s.tones[kept] = cells, s.keys[i], s.tones[i]
			kept++
		}
	}
	s.rows, s.keys, s.tones = s.rows[:kept], s.keys[:kept], s.tones[:kept]
}

// gap is between columns.
const gap = 2

// leastName is how far the first column shrinks before others go.
const leastName = 16

// lines are the head and the rows in a width: the last columns go first, and the first one,
// a name, loses its beginning.
func (s *sheet) lines(width int) (head string, rows []string) {
	widths := make([]int, len(s.heads))
	measure := func(cells []string) {
		for i, text := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	heads := append([]string{}, s.heads...)
	if s.sorted >= 0 {
		heads[s.sorted] += "↓"
	}
	measure(heads)
	for _, cells := range s.rows {
		measure(cells)
	}
	shown := len(widths)
	for ; shown > 1 && total(widths[:shown])-widths[0]+min(widths[0], leastName) > width; shown-- {
	}
	if over := total(widths[:shown]) - width; over > 0 {
		widths[0] = max(min(widths[0], leastName), widths[0]-over)
	}
	head = s.line(heads, widths[:shown], width)
	for _, cells := range s.rows {
		rows = append(rows, s.line(cells, widths[:shown], width))
	}
	return head, rows
}

func total(widths []int) (sum int) {
	for _, w := range widths {
		sum += w + gap
	}
	return sum - gap
}

func (s *sheet) line(cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, w := range widths {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		text := cells[i]
		if i == 0 {
			text = tail(text, w)
		}
		pad := strings.Repeat(" ", max(0, w-utf8.RuneCountInString(text)))
		if s.right[i] {
			text = pad + text
		} else if i < len(widths)-1 {
			text += pad
		}
		b.WriteString(text)
	}
	return head(b.String(), width)
}

// head is the beginning of a text that fits a width.
func head(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// tail is the end of a name that fits a width: names of one network differ there.
func tail(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n <= width {
		return text
	}
	return "…" + string([]rune(text)[n-max(0, width-1):])
}

// wrapped is a text in lines of a width, of which all but the first are indented.
func wrapped(text string, width, indent int) (lines []string) {
	begin := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = begin + word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, head(line, width))
			line = strings.Repeat(" ", indent) + word
		}
	}
	return append(lines, head(line, width))
}
