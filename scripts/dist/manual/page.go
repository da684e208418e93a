package main

import (
	"fmt"
	"strings"

	"lunar/internal/cli"
)

// files are those of the packages, for every page.
const files = `.Sh FILES
.Bl -tag -width Ds
.It Pa /etc/lunar/tgtd.yaml
The configuration.
.It Pa /var/lib/lunar
The state directory: the server's identity, volumes with relative paths, and what must outlive a start.
.It Pa /run/lunar/control.sock
The control API.
.It Pa /dev/shm/lunar
The cache, which outlives the process.
.It Pa /usr/share/doc/lunar
The documentation.
.El
`

// page is a page of the manual, in mdoc(7).
func page(p cli.Described, section int, date, version string) string {
	var b strings.Builder
	name := strings.ToUpper(p.Name)
	fmt.Fprintf(&b, ".Dd %s\n.Dt %s %d\n.Os Lunar %s\n.Sh NAME\n.Nm %s\n.Nd %s\n", date, name, section, escaped(version), p.Name, strings.TrimSuffix(escaped(p.Help), "."))
	fmt.Fprintf(&b, ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar arguments\n.Sh DESCRIPTION\n%s\n", sentences(p.Help))
	if p.Detail != "" {
		fmt.Fprintf(&b, ".Pp\n%s\n", sentences(p.Detail))
	}
	b.WriteString(".Pp\nEvery command takes:\n")
	words(&b, p.Flags, flag)
	b.WriteString(".Sh COMMANDS\n")
	commands(&b, p, "")
	b.WriteString(files)
	b.WriteString(".Sh EXIT STATUS\n.Bl -tag -width Ds\n")
	for _, status := range cli.Statuses {
		fmt.Fprintf(&b, ".It %d\n%s\n", status.Status, sentences(strings.ReplaceAll(status.Meaning, "`", "")))
	}
	b.WriteString(".El\n")
	return b.String()
}

// commands are those below n, each with what it takes.
func commands(b *strings.Builder, n cli.Described, path string) {
	for _, c := range n.Commands {
		at := strings.TrimSpace(path + " " + c.Name)
		fmt.Fprintf(b, ".Ss %s\n", escaped(at))
		if c.Usage != "" {
			fmt.Fprintf(b, ".Dl %s\n", escaped(c.Usage))
		}
		fmt.Fprintf(b, "%s\n", sentences(c.Help))
		if c.Detail != "" {
			fmt.Fprintf(b, ".Pp\n%s\n", sentences(c.Detail))
		}
		words(b, c.Arguments, argument)
		words(b, c.Flags, flag)
		commands(b, c, at)
	}
}

// words are flags or arguments, as head has them.
func words(b *strings.Builder, all []cli.Word, head func(cli.Word) string) {
	if len(all) == 0 {
		return
	}
	b.WriteString(".Bl -tag -width Ds\n")
	for _, w := range all {
		b.WriteString(".It " + head(w) + "\n")
		if w.Help != "" {
			b.WriteString(sentences(w.Help) + "\n")
		}
	}
	b.WriteString(".El\n")
}

func argument(w cli.Word) string { return "Ar " + escaped(w.Name) }

func flag(w cli.Word) string {
	text := "Fl -" + escaped(w.Name)
	if w.Short != "" {
		text = "Fl " + w.Short + " , " + text
	}
	if w.Value != "" {
		text += " Ns = Ns Ar " + escaped(w.Value)
	}
	return text
}

// sentences has each on a line of its own, as roff(7) wants, of which none is a request.
func sentences(text string) string {
	text = strings.ReplaceAll(escaped(strings.Join(strings.Fields(text), " ")), ". ", ".\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func escaped(text string) string { return strings.NewReplacer(`\`, `\e`, "\"", `\(dq`).Replace(text) }
