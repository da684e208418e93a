package foreign

import (
	"fmt"
	"strings"
)

// Include returns the files that a text includes by a pattern, in their order. Nil: they
// cannot be had.
type Include func(pattern string) ([]File, error)

// File is a text and what messages call it.
type File struct {
	Name string
	Data []byte
}

// maxIncludes is how many files may include each other.
const maxIncludes = 8

// markup reads the format of tgt-admin (Perl's Config::General): lines of a key and its
// value, and blocks <key value> to </key>.
type markup struct {
	include Include
	notes   *[]Note
	items   int
}

// parse reads a file into an item.
func (m *markup) parse(f File, into *item, depth int) error {
	open := []*item{into}
	lines := strings.Split(strings.ReplaceAll(string(f.Data), "\x00", ""), "\n")
	for n := 0; n < len(lines); n++ {
		place := fmt.Sprintf("line %d", n+1)
		if depth > 0 {
			place = f.Name + ", " + place
		}
		line := uncommented(lines[n])
		for strings.HasSuffix(line, `\`) && n+1 < len(lines) {
			n++
			line = strings.TrimSuffix(line, `\`) + uncommented(lines[n])
		}
		if line == "" {
			continue
		}
		if m.items++; m.items > maxItems {
			return errMany
		}
		above := open[len(open)-1]
		switch {
		case strings.HasPrefix(line, "</"):
			if key := strings.TrimSpace(strings.Trim(line, "</>")); len(open) == 1 || !strings.EqualFold(open[len(open)-1].key, key) {
				return fmt.Errorf("%s: found the end of a block that was not begun there", place)
			}
			open = open[:len(open)-1]
		case strings.HasPrefix(line, "<"):
			kid := keyed(strings.Trim(line, "<>"), place)
			above.kids = append(above.kids, kid)
			if open = append(open, kid); len(open) > maxDepth {
				return errDepth
			}
		default:
			kid := keyed(line, place)
			if strings.EqualFold(kid.key, "include") {
				if err := m.included(kid, above, depth); err != nil {
					return err
				}
				continue
			}
			above.kids = append(above.kids, kid)
		}
	}
	if len(open) > 1 {
		return fmt.Errorf("%s: found no end of the block %s", open[len(open)-1].place, shownKey(open[len(open)-1].key))
	}
	return nil
}

// included reads the files that a line includes.
func (m *markup) included(line, into *item, depth int) error {
	pattern := strings.Join(line.args, " ")
	if m.include == nil || depth >= maxIncludes {
		*m.notes = append(*m.notes, Note{line.place, "include was not followed", "import the files that it names, too"})
		return nil
	}
	files, err := m.include(pattern)
	if err != nil {
		*m.notes = append(*m.notes, Note{line.place, "include could not be followed: " + err.Error(), "import the files that it names, too"})
		return nil
	}
	for _, f := range files {
		if err := m.parse(f, into, depth+1); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// uncommented is a line without its comment and the blanks around it.
func uncommented(line string) string {
	for at := range len(line) {
		if line[at] == '#' && (at == 0 || line[at-1] == ' ' || line[at-1] == '\t') {
			line = line[:at]
			break
		}
	}
	return strings.TrimSpace(line)
}

// keyed divides a line into its key and the words of its value.
func keyed(line, place string) *item {
	key, value := line, ""
	if at := strings.IndexAny(line, " \t="); at >= 0 {
		key, value = line[:at], strings.TrimSpace(line[at:])
		value = strings.TrimSpace(strings.TrimPrefix(value, "="))
	}
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return &item{key: key, args: strings.Fields(value), place: place}
}
