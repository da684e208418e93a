// Command structure measures how the code is divided into files and packages, and writes
// docs/internals/structure.md. structure.md.tmpl describes the counts. The walks of
// commands are not read off the code: the real server runs them, compiled so that it
// counts its statements.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"lunar/internal/lint/structure"
)

// options is the command line.
type options struct {
	Measure  measureCommand  `cmd:"" help:"Measure a tree, and note what was found."`
	Document documentCommand `cmd:"" help:"Write the document from the notes."`
}

// measureCommand measures one tree.
type measureCommand struct {
	Tree     string   `default:"." type:"existingdir" help:"Where the tree is."`
	Programs []string `default:"./cmd/..." help:"The programs; their packages are measured, and what these import."`
	Version  string   `help:"What the tree is called in the document."`
	Notes    string   `default:"docs/internals/structure/after.json" help:"Where results are noted."`
}

// notes are what is known of a tree.
type notes struct {
	Version  string
	Packages []structure.Package
	Walks    []walk
}

// Run implements a command of kong.
func (m *measureCommand) Run() error {
	tree, err := structure.Load(m.Tree, m.Programs...)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "structure")
	if err != nil {
		return err
	}
	n := notes{Version: m.Version, Packages: tree.Measure()}
	binary, err := build(m.Tree, dir)
	if err == nil {
		n.Walks, err = measureWalks(dir, tree, binary)
	}
	if err == nil {
		err = n.write(m.Notes)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (n *notes) write(path string) error {
	text, err := json.MarshalIndent(n, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(text, '\n'), 0o644))
}

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("structure"), kong.Description("Measure how the code is divided."))
	line.FatalIfErrorf(line.Run())
}
