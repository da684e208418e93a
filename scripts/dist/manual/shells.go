package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lunar/internal/cli"
)

func bash(p cli.Described) string {
	all := places(p, "", nil)
	oneOf, paths := valued(all)
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for bash.\n%s() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= i\n", p.Name, ident(p.Name))
	b.WriteString("\tcase $prev in\n")
	for _, name := range slices.Sorted(maps.Keys(oneOf)) {
		fmt.Fprintf(&b, "\t%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\"); return ;;\n", name, strings.Join(oneOf[name], " "))
	}
	if len(paths) > 0 {
		fmt.Fprintf(&b, "\t%s) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n", strings.Join(paths, " | "))
	}
	b.WriteString("\tesac\n" + pathOf(all, "1", "COMP_CWORD", "${COMP_WORDS[i]}") + "\tcase $path in\n")
	for _, at := range all {
		files := ""
		if slices.ContainsFunc(at.values, func(w cli.Word) bool { return w.IsPath }) {
			files = "; compopt -o default"
		}
		fmt.Fprintf(&b, "\t'%s') mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")%s ;;\n", at.path, at.names(), files)
	}
	fmt.Fprintf(&b, "\tesac\n}\ncomplete -F %s %s\n", ident(p.Name), p.Name)
	return b.String()
}

func zsh(p cli.Described) string {
	all := places(p, "", nil)
	oneOf, paths := valued(all)
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# Completion of %[1]s for zsh.\n%s() {\n\tlocal path= i prev=${words[CURRENT-1]}\n\tlocal -a commands flags values\n\tcase $prev in\n", p.Name, ident(p.Name))
	for _, name := range slices.Sorted(maps.Keys(oneOf)) {
		fmt.Fprintf(&b, "\t%s) compadd -- %s; return ;;\n", name, strings.Join(oneOf[name], " "))
	}
	if len(paths) > 0 {
		fmt.Fprintf(&b, "\t%s) _files; return ;;\n", strings.Join(paths, " | "))
	}
	b.WriteString("\tesac\n" + pathOf(all, "2", "CURRENT", "${words[i]}") + "\tcase $path in\n")
	described := func(name, help string) string { return quoted(strings.ReplaceAll(name, ":", `\:`) + ":" + help) }
	for _, at := range all {
		fmt.Fprintf(&b, "\t'%s')\n\t\tcommands=(", at.path)
		for _, c := range at.commands {
			b.WriteString(described(c.Name, c.Help) + " ")
		}
		b.WriteString(")\n\t\tflags=(")
		for _, w := range at.words {
			b.WriteString(described("--"+w.Name, w.Help) + " ")
		}
		b.WriteString(")\n\t\tvalues=(")
		for _, v := range at.values {
			b.WriteString(strings.Join(v.OneOf, " ") + " ")
		}
		b.WriteString(")\n\t\t;;\n")
	}
	fmt.Fprintf(&b, "\tesac\n\t(( $#commands )) && _describe command commands\n\t(( $#values )) && compadd -- $values\n\t_describe -o flag flags\n\t(( $#commands + $#values )) || _files\n}\n%s \"$@\"\n", ident(p.Name))
	return b.String()
}

func fish(p cli.Described) string {
	all := places(p, "", nil)
	at := "__fish" + ident(p.Name) + "_at"
	var known []string
	for _, l := range all[1:] {
		known = append(known, quoted(l.path))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish.\nfunction %s\n\tset -l path ''\n\tfor word in (commandline -opc)[2..-1]\n\t\tcontains -- \"$path$word \" %s; and set path \"$path$word \"\n\tend\n\ttest \"$path\" = \"$argv[1]\"\nend\n", p.Name, at, strings.Join(known, " "))
	for _, l := range all {
		condition := fmt.Sprintf("complete -c %s -n \"%s %s\"", p.Name, at, quoted(l.path))
		for _, c := range l.commands {
			fmt.Fprintf(&b, "%s -f -a %s -d %s\n", condition, c.Name, quoted(c.Help))
		}
		for _, w := range l.words {
			fmt.Fprintf(&b, "%s -l %s%s -d %s\n", condition, w.Name, fishValue(w), quoted(w.Help))
		}
		for _, v := range l.values {
			if len(v.OneOf) > 0 {
				fmt.Fprintf(&b, "%s -f -a %s\n", condition, quoted(strings.Join(v.OneOf, " ")))
			}
		}
	}
	return b.String()
}

// fishValue is what follows a flag.
func fishValue(w cli.Word) string {
	switch {
	case len(w.OneOf) > 0:
		return " -x -a " + quoted(strings.Join(w.OneOf, " "))
	case w.IsPath:
		return " -r -F"
	case w.Value != "":
		return " -x"
	}
	return ""
}
