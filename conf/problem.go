package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration, or doubtful.
type Problem struct {
	File         string
	Line, Column int    // from 1; 0 if the problem has no place in the file
	Key          string // path of the key, such as volumes.disk.size; ? is one that is not shown
	Found        string // the value where quote.go lets it be shown, or what stands there instead
	Expected     string
}

// Warning is a Problem that does not stop the server.
type Warning = Problem

// String is file:line:column, key, value and expectation on one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": found " + p.Found)
	if p.Expected != "" {
		b.WriteString(", expected " + p.Expected)
	}
	return b.String()
}

// Plain is String without the place in the file.
func (p Problem) Plain() string {
	p.File, p.Line = "", 0
	return strings.TrimPrefix(p.String(), ": ")
}

// Errors are all the problems of a configuration in the order of the file.
type Errors []Problem

// Error has every problem on a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts problems by their place in the file.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return problems
}
