package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"lunar/internal/lint/structure"
	evidence "lunar/scripts/evidence/notes"
)

// documentCommand renders what was noted.
type documentCommand struct {
	Before string `default:"docs/internals/structure/before.json" type:"existingfile" help:"Notes of the tree as it was."`
	After  string `default:"docs/internals/structure/after.json" type:"existingfile" help:"Notes of the tree as it is."`
	To     string `default:"docs/internals/structure.md" help:"The document."`
}

//go:embed structure.md.tmpl
var document string

// contents are what the template sees.
type contents struct {
	Before, After notes
	Rows          []packageRow
	Walks         []walkRow
}

// packageRow and walkRow have cells of both states, "-" where there is none.
type (
	packageRow struct {
		Path, Before, After string
	}
	walkRow struct {
		Name          string
		Before, After walk
	}
)

// Run implements a command of kong.
func (d *documentCommand) Run() error {
	var c contents
	for path, n := range map[string]*notes{d.Before: &c.Before, d.After: &c.After} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, n)
		}
		if err != nil {
			return err
		}
	}
	c.Rows = packageRows(c.Before.Packages, c.After.Packages)
	for i, w := range c.After.Walks {
		c.Walks = append(c.Walks, walkRow{w.Name, c.Before.Walks[i], w})
	}
	return evidence.Render(d.To, document, c)
}

// packageRows merges two sorted lists.
func packageRows(before, after []structure.Package) (rows []packageRow) {
	for len(before) > 0 || len(after) > 0 {
		row := packageRow{Before: none, After: none}
		old := len(before) > 0 && (len(after) == 0 || before[0].Path <= after[0].Path)
		now := len(after) > 0 && (len(before) == 0 || after[0].Path <= before[0].Path)
		if now {
			row.Path, row.After, after = after[0].Path, cells(after[0]), after[1:]
		}
		if old {
			row.Path, row.Before, before = before[0].Path, cells(before[0]), before[1:]
		}
		row.Path = strings.TrimPrefix(row.Path, "lunar/")
		rows = append(rows, row)
	}
	return rows
}

const none = "- | - | - | -"

func cells(p structure.Package) string {
	return fmt.Sprintf("%d | %d | %.0f %% | %d", p.Files, p.Lines, p.Share(), p.Exported)
}
