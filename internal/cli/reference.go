package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// sharedFrom is how many commands have a flag that is described once for all of them.
const sharedFrom = 4

// Reference describes every command and flag of the program in Markdown.
func (p Program) Reference() string {
	parser := kong.Must(p.Grammar, kong.Name(p.Name), kong.Exit(func(int) {}), kong.Vars{"version": ""})
	r := reference{program: p.Name, uses: map[string]int{}}
	leaves := parser.Model.Leaves(true)
	for _, command := range leaves {
		for _, f := range command.Flags {
			if !f.Hidden {
				r.uses[described(f)]++
			}
		}
	}
	for _, command := range leaves {
		r.command(command)
	}
	if several := r.shared(leaves); several != "" {
		fmt.Fprintf(&r.text, "### Flags of several commands\n\n| Flag | Meaning |\n|---|---|\n%s\n", several)
	}
	return r.text.String()
}

type reference struct {
	program string
	uses    map[string]int // of a flag, by its description
	text    strings.Builder
}

func (r *reference) shared(leaves []*kong.Node) string {
	var b strings.Builder
	told := map[string]bool{}
	for _, command := range leaves {
		for _, f := range command.Flags {
			if row := described(f); r.uses[row] >= sharedFrom && !told[row] {
				told[row] = true
				b.WriteString(row)
			}
		}
	}
	return b.String()
}

// command describes one.
func (r *reference) command(n *kong.Node) {
	name := r.program + " " + n.Path()
	fmt.Fprintf(&r.text, "### %s\n\n", name)
	usage := []string{name}
	var rows, elsewhere []string
	for _, a := range n.Positional {
		usage = append(usage, a.Summary())
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", a.Summary(), cell(a.Help)))
	}
	for _, f := range n.Flags {
		switch row := described(f); {
		case f.Hidden || f.Name == "help":
		case r.uses[row] >= sharedFrom:
			elsewhere = append(elsewhere, "`--"+f.Name+"`")
		default:
			rows = append(rows, row)
		}
		if f.Required {
			usage = append(usage, "--"+f.Name+value(f))
		}
	}
	fmt.Fprintf(&r.text, "    %s\n\n%s\n\n", strings.Join(usage, " "), n.Help)
	if rows != nil {
		fmt.Fprintf(&r.text, "| Argument or flag | Meaning |\n|---|---|\n%s\n", strings.Join(rows, ""))
	}
	if elsewhere != nil {
		fmt.Fprintf(&r.text, "See [below](#flags-of-several-commands): %s.\n\n", strings.Join(elsewhere, ", "))
	}
}

// described is the row of a flag.
func described(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = fmt.Sprintf("-%c, %s", f.Short, name)
	}
	help := f.Help
	if f.HasDefault && !strings.Contains(help, "efault") && f.Default != "" {
		help += " Default: `" + f.Default + "`."
	}
	return fmt.Sprintf("| `%s%s` | %s |\n", name, value(f), cell(help))
}

// value is the placeholder of a flag that takes one.
func value(f *kong.Flag) string {
	if f.IsBool() || f.IsCounter() {
		return ""
	}
	return " " + strings.Trim(f.FormatPlaceHolder(), `"`)
}

// cell keeps the text from ending the column of a table.
func cell(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", `\*`).Replace(text)
}

// ReferenceStatuses describes the exit statuses in Markdown.
func ReferenceStatuses() string {
	var b strings.Builder
	fmt.Fprintln(&b, "| Exit status | Meaning |\n|---|---|")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "| %d | %s |\n", s.Status, s.Meaning)
	}
	return b.String()
}

// Replaced returns a document with text between a mark, <!-- mark -->, and the next end
// mark in place of what is there; ok is false if it does not have both.
func Replaced(document, mark, text string) (out string, ok bool) {
	begin, end := "<!-- "+mark+" -->\n", "<!-- end -->"
	head, rest, found := strings.Cut(document, begin)
	_, tail, ended := strings.Cut(rest, end)
	return head + begin + text + end + tail, found && ended
}
