package main

import (
	"fmt"
	"strings"

	"lunar/internal/cli"
)

// place is a command with what may follow it. The program is one, with an empty path.
type place struct {
	path     string // "qos set "
	commands []cli.Described
	words    []cli.Word // flags
	values   []cli.Word // arguments
}

// places are n and all below it. Flags of the commands that one is in are its own as well.
func places(n cli.Described, path string, above []cli.Word) []place {
	flags := append(append([]cli.Word{}, n.Flags...), above...)
	out := []place{{path, n.Commands, flags, n.Arguments}}
	for _, c := range n.Commands {
		out = append(out, places(c, path+c.Name+" ", flags)...)
	}
	return out
}

// names are those of the commands and flags of a place.
func (p place) names() string {
	var out []string
	for _, c := range p.commands {
		out = append(out, c.Name)
	}
	for _, w := range p.words {
		out = append(out, "--"+w.Name)
	}
	for _, v := range p.values {
		out = append(out, v.OneOf...)
	}
	return strings.Join(out, " ")
}

// pathOf is shell code that sets path to the command that the words before the cursor
// lead to.
func pathOf(all []place, first, end, word string) string {
	var known []string
	for _, p := range all[1:] {
		known = append(known, "'"+p.path+"'")
	}
	return fmt.Sprintf("\tfor ((i = %s; i < %s; i++)); do\n\t\tcase \"$path%s \" in %s) path+=\"%s \" ;; esac\n\tdone\n",
		first, end, word, strings.Join(known, " | "), word)
}

// valued are the flags of all places that take one of some values, or a path.
func valued(all []place) (oneOf map[string][]string, paths []string) {
	oneOf, seen := map[string][]string{}, map[string]bool{}
	for _, p := range all {
		for _, w := range p.words {
			if seen[w.Name] {
				continue
			}
			seen[w.Name] = true
			switch {
			case len(w.OneOf) > 0:
				oneOf["--"+w.Name] = w.OneOf
			case w.IsPath:
				paths = append(paths, "--"+w.Name)
			}
		}
	}
	return oneOf, paths
}

// ident is a program's name in names of shell functions.
func ident(name string) string { return "_" + strings.ReplaceAll(name, "-", "_") }

// quoted is text as one word of any of the shells.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "’") + "'" }
