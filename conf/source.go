package conf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// position is a place in a file, both from 1.
type position struct{ line, column int }

// source is the text of a file and what must not be quoted from it.
type source struct {
	name  string
	lines []string
	masks map[int][]string // by line number, fragments of secrets, none empty
}

func newSource(name string, data []byte) *source {
	return &source{name, strings.Split(string(data), "\n"), map[int][]string{}}
}

// hide keeps the text of a secret, whose lines begin in one of the lines
// first to last, out of later excerpts of those lines.
func (s *source) hide(first, last int, text string) {
	for part := range strings.Lines(text) {
		part = strings.Trim(part, " \t\r\n")
		for line := first; line <= last && part != ""; line++ {
			s.masks[line] = append(s.masks[line], part)
		}
	}
}

// mask replaces the secrets of a line in text, the longest first, since one
// may be part of another.
func (s *source) mask(line int, text string) string {
	masks := s.masks[line]
	slices.SortFunc(masks, func(a, b string) int { return len(b) - len(a) })
	for _, m := range masks {
		text = strings.ReplaceAll(text, m, hidden)
	}
	return text
}

// excerpt quotes the line at p and points to its column.
func (s *source) excerpt(p position) string {
	if p.line < 1 || p.line > len(s.lines) {
		return ""
	}
	line := strings.TrimRight(s.lines[p.line-1], " \r")
	before := []rune(line)
	before = before[:min(max(p.column-1, 0), len(before))]
	pad := strings.Map(blank, s.mask(p.line, string(before)))
	return fmt.Sprintf("%6d | %s\n       | %s^", p.line, s.mask(p.line, line), pad)
}

// hasWord reports whether the text at p is word. The YAML parser puts a null
// where nothing stands, so that only the text tells.
func (s *source) hasWord(p position, word string) bool {
	runes := []rune(s.lines[p.line-1])
	return p.column <= len(runes) && strings.HasPrefix(string(runes[p.column-1:]), word)
}

// blank keeps tabs, so that a caret stays below its column.
func blank(r rune) rune {
	if r == '\t' {
		return r
	}
	return ' '
}

var (
	keyLine    = regexp.MustCompile(`^[\s{,-]*['"]?[A-Za-z0-9._-]+['"]?\s*:`)
	secretLine = regexp.MustCompile(`(?i)sec?r`)
)

// hideUnparsed hides whatever may be a secret in a text that has no syntax
// tree: the rest of each line after a key that looks like "secret", and the
// lines after it up to the next key.
func (s *source) hideUnparsed() {
	inSecret := false
	for i, line := range s.lines {
		if at := secretLine.FindStringIndex(line); at != nil {
			inSecret = true
			_, value, _ := strings.Cut(line[at[0]:], ":")
			s.hide(i+1, i+1, value)
			continue
		}
		if keyLine.MatchString(line) {
			inSecret = false
		} else if inSecret {
			s.hide(i+1, i+1, line)
		}
	}
}
