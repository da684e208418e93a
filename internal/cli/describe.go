package cli

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/alecthomas/kong"
)

// describeWord is the command line that prints the program's Commands as JSON: man pages
// and completions are made of it.
const describeWord = "__describe"

// Described is a program, or one of its commands.
type Described struct {
	Name      string
	Usage     string `json:",omitempty"` // its arguments and flags in one line
	Help      string
	Detail    string      `json:",omitempty"`
	Flags     []Word      `json:",omitempty"` // its own, besides those of the commands that it is in
	Arguments []Word      `json:",omitempty"`
	Commands  []Described `json:",omitempty"`
}

// Word is a flag or an argument.
type Word struct {
	Name   string
	Short  string   `json:",omitempty"`
	Value  string   `json:",omitempty"` // placeholder; empty: the flag takes none
	Help   string   `json:",omitempty"`
	OneOf  []string `json:",omitempty"` // the values that it may have; empty: any
	IsPath bool     `json:",omitempty"` // of a file or directory
}

// describe writes the description of a program.
func describe(to io.Writer, app *kong.Application) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(descriptionOf(app.Node))
}

func descriptionOf(n *kong.Node) Described {
	d := Described{Name: n.Name, Help: n.Help, Detail: n.Detail}
	if n.Leaf() {
		d.Usage = n.Summary()
	}
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		w := wordOf(f.Value)
		if f.Short != 0 {
			w.Short = string(f.Short)
		}
		if !f.IsBool() && !f.IsCounter() {
			w.Value = f.FormatPlaceHolder()
		}
		d.Flags = append(d.Flags, w)
	}
	for _, p := range n.Positional {
		d.Arguments = append(d.Arguments, wordOf(p))
	}
	for _, c := range n.Children {
		if !c.Hidden {
			d.Commands = append(d.Commands, descriptionOf(c))
		}
	}
	return d
}

func wordOf(v *kong.Value) Word {
	w := Word{Name: v.Name, Help: v.Help}
	if v.Enum != "" {
		w.OneOf = slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
	}
	if v.Tag != nil {
		w.IsPath = slices.Contains([]string{"path", "existingfile", "existingdir", "filecontent"}, v.Tag.Type)
	}
	return w
}
