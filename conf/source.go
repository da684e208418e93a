package conf

import (
	"bytes"
	"fmt"
	"strings"
)

// position is a place in a file, both from 1.
type position struct{ line, column int }

// source is the text of a file. Nothing of it is ever quoted in a message but
// what quote.go lets through.
type source struct {
	name  string
	lines []string
	joint *source // whose places are behind jointLine; nil: there is none
}

func newSource(name string, data []byte) *source {
	return &source{name: name, lines: strings.Split(string(data), "\n")}
}

// byteOrderMark may begin a text in UTF-8, which some editors write; it means
// nothing there.
var byteOrderMark = []byte("\xef\xbb\xbf")

// withoutMark is the text after its byte order mark.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, byteOrderMark) }

// hasWord reports whether the text at p is word. The YAML parser puts a null
// where nothing stands, so that only the text tells.
func (s *source) hasWord(p position, word string) bool {
	s, p = s.within(p)
	runes := []rune(s.lines[p.line-1])
	return p.column <= len(runes) && strings.HasPrefix(string(runes[p.column-1:]), word)
}

// jointLine is behind the lines of all texts: the line of a place in a Joint is that in
// its text and so many more.
const jointLine = 1 << 30

// within is the file and the place there of a position.
func (s *source) within(p position) (*source, position) {
	if p.line > jointLine {
		return s.joint, position{p.line - jointLine, p.column}
	}
	return s, p
}

// tell says where a position is, for who knows that another one is in s.
func (s *source) tell(p position) string {
	file, at := s.within(p)
	if file == s {
		return fmt.Sprintf("line %d", at.line)
	}
	return fmt.Sprintf("line %d of %s", at.line, file.name)
}
