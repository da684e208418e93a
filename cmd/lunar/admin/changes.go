package admin

import (
	"errors"
	"fmt"
	"strings"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// signOf is the sign of a change: + is added, ~ changed, - removed.
func signOf(change string) string {
	switch {
	case strings.HasSuffix(change, ": new"):
		return "+"
	case strings.HasSuffix(change, ": removed"):
		return "-"
	}
	return "~"
}

// tellApplied prints what has come of a change, or would come of it. subject names what
// was to be put into force.
func tellApplied(c cli.Console, subject string, applied *control.Applied) {
	tellWarnings(c, applied)
	if len(applied.Changes) == 0 {
		fmt.Fprintf(c.Out, "%s: nothing to change\n", subject)
	}
	count := map[string]int{}
	for _, change := range applied.Changes {
		sign := signOf(change)
		count[sign]++
		fmt.Fprintf(c.Out, "%s %s\n", sign, iscsiname.Printable(change))
	}
	tellImpacts(c, applied.Impacts)
	for _, d := range applied.Drift {
		fmt.Fprintf(c.Out, "stays as changed at run time: %s: %s\n", d.Kind, iscsiname.Printable(d.What))
	}
	if len(applied.Changes) > 0 {
		fmt.Fprintf(c.Out, "%d added, %d changed, %d removed. ", count["+"], count["~"], count["-"])
	}
	fmt.Fprintln(c.Out, applied.Lasting)
}

func tellWarnings(c cli.Console, applied *control.Applied) {
	for _, w := range append(applied.Warnings, applied.Note) {
		if w != "" {
			fmt.Fprintf(c.Err, "warning: %s\n", iscsiname.Printable(w))
		}
	}
}

// tellImpacts prints whom and what a change hits.
func tellImpacts(c cli.Console, impacts []control.Impact) {
	for _, i := range impacts {
		fmt.Fprintf(c.Out, "%s: %s\n", i.Severity, iscsiname.Printable(strings.TrimPrefix(i.Key+": "+i.What, ": ")))
		for _, s := range i.Sessions {
			fmt.Fprintf(c.Out, "  session %s\n", iscsiname.Printable(s))
		}
	}
}

// concluded prints what has come of a change. Of a dry run that found permissions missing
// it is an error, with the command that has them.
func concluded(c cli.Console, subject string, applied *control.Applied, with control.Allowances, command func(control.Allowances) string) error {
	tellApplied(c, subject, applied)
	if with, some := lacking(with, applied); some {
		return destructive("it would be refused; to do it: %s", command(with))
	}
	return nil
}

// lacking are the permissions with those that a dry run found missing; none is false if
// it found none.
func lacking(with control.Allowances, applied *control.Applied) (_ control.Allowances, some bool) {
	for _, i := range applied.Impacts {
		if !i.Permitted {
			with, some = with.More(i.Needs, i.Volume), true
		}
	}
	return with, some
}

// advisedBy makes of a refusal for what is destructive one with the command that does
// it, which command writes.
func advisedBy(err error, with control.Allowances, command func(control.Allowances) string) error {
	return advised(err, with, func(with control.Allowances) string { return ": " + command(with) })
}

// advised makes of a refusal for what is destructive one that says how it is done.
func advised(err error, with control.Allowances, how func(control.Allowances) string) error {
	var r *control.Refusal
	if !errors.As(err, &r) {
		return err
	}
	missing := false
	plain := &control.Refusal{What: r.What, State: r.State}
	for _, reason := range r.Reasons {
		if more, ok := with.MoreFor(reason); ok && r.State {
			with, missing, reason.Place = more, true, ""
		}
		plain.Reasons = append(plain.Reasons, reason)
	}
	if !missing {
		return err
	}
	return destructive("%w\nto do it all the same%s", plain, how(with))
}
