package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// block is a run of statements, as the compiler counts them. The file's path begins with
// its package's.
type block struct {
	file                 string
	line, column         int
	lastLine, lastColumn int
}

// holds reports whether the block spans a position.
func (b block) holds(line, column int) bool {
	return (line > b.line || line == b.line && column >= b.column) &&
		(line < b.lastLine || line == b.lastLine && column < b.lastColumn)
}

// within reports whether b lies in another block.
func (b block) within(o block) bool {
	return o.holds(b.line, b.column) && (b.lastLine < o.lastLine || b.lastLine == o.lastLine && b.lastColumn <= o.lastColumn)
}

// counts are all blocks, and whether they were executed.
type counts map[block]bool

// readCounts reads what the probe wrote.
func readCounts(dir string) (counts, error) {
	text := filepath.Join(dir, "counts.txt")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+text).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	profile, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	c := counts{}
	for line := range strings.Lines(string(profile)) {
		file, rest, found := strings.Cut(line, ":")
		if !found || file == "mode" {
			continue
		}
		var statements, times int
		b := block{file: file}
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.line, &b.column, &b.lastLine, &b.lastColumn, &statements, &times); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		c[b] = c[b] || times > 0
	}
	return c, nil
}

// both keeps what was executed in both windows.
func (c counts) both(other counts) counts {
	if c == nil {
		return other
	}
	for b, ran := range c {
		c[b] = ran && other[b]
	}
	return c
}

// leaveOut forgets the blocks that an idle server executes.
func (c counts) leaveOut(idle counts) {
	for b, ran := range idle {
		if ran {
			c[b] = false
		}
	}
}
