package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type whyCommand struct {
	asking    `embed:""`
	output    `embed:""`
	Initiator string `arg:"" help:"iSCSI name of the initiator."`
	Target    string `arg:"" help:"iSCSI name of the target."`
	Address   string `placeholder:"IP" help:"Address that the initiator comes from. Default: that of its session or of its last login that failed."`
	User      string `placeholder:"USER" help:"CHAP user, or GROUP/USER, that it proves to be. Default: all that it may be are looked at."`
	Portal    string `placeholder:"PORTAL" help:"Portal group, or address:port of a portal, by which it comes. Default: all of the target."`
}

// Run says what a login would come to.
func (k whyCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		q := control.WhyQuery{Initiator: k.Initiator, Target: k.Target, Address: k.Address, User: k.User, Portal: k.Portal}
		raw, err := api.Raw(ctx, q.Path())
		if err != nil {
			return err
		}
		var w control.Why
		if err := json.Unmarshal(raw, &w); err != nil {
			return err
		}
		if form != asTable {
			err = document(c.Out, form, raw)
		} else {
			renderWhy(c.Out, &w)
		}
		if err == nil && !w.Admitted {
			err = &cli.ExitError{Status: cli.ExitNo, Err: errors.New("it would not be admitted: " + iscsiname.Printable(w.Reason))}
		}
		return err
	})
}

// renderWhy prints an answer for people: first the verdict and what decides.
func renderWhy(w io.Writer, a *control.Why) {
	say := func(format string, args ...any) {
		for i := range args {
			args[i] = iscsiname.Printable(fmt.Sprint(args[i]))
		}
		fmt.Fprintf(w, format+"\n", args...)
	}
	if a.Admitted {
		say("%s would be admitted to %s.", a.Initiator, a.Target)
	} else {
		say("%s would not be admitted to %s.", a.Initiator, a.Target)
		say("decides    %s: %s", a.Decides, a.Reason)
		say("told       %s", a.Told)
		say("to do      %s", a.Advice)
	}
	if a.Address == "" {
		say("from       an unknown address, which no rule with networks matches; give --address")
	} else {
		say("from       %s", a.Address)
	}
	if a.PortalGroup != "" {
		say("by         portal group %s", a.PortalGroup)
	}
	if a.Rule != "" {
		say("access     %s", a.Rule)
		say("CHAP       %s", chapText(a))
	}
	for _, u := range a.Users {
		if u.Admitted {
			say("  user %s: would be admitted with the right secret", u.User)
		} else {
			say("  user %s: %s", u.User, u.Reason)
		}
	}
	if len(a.LUNs) > 0 {
		section(w, whyLUNs, a.LUNs, "")
	}
	if len(a.Sessions) > 0 {
		section(w, whySessions, a.Sessions, "")
	} else {
		say("\nIt has no session.")
	}
	if len(a.Failures) > 0 {
		section(w, whyFailures, a.Failures, "")
	} else {
		say("\nNo login of it that failed is remembered.")
	}
}

func chapText(a *control.Why) string {
	switch {
	case a.CHAP:
		return "required, auth-group " + a.AuthGroup
	case a.AuthGroup != "":
		return "not required by auth-group " + a.AuthGroup
	}
	return "not required"
}

var whyLUNs = listing.Table[control.WhyLUN]{
	{Name: "lun", Of: func(l *control.WhyLUN) any { return l.LUN }},
	{Name: "volume", Of: func(l *control.WhyLUN) any { return l.Volume }},
	{Name: "rights", Of: func(l *control.WhyLUN) any { return rights(l.ReadOnly) }},
	{Name: "qos-rules", Of: func(l *control.WhyLUN) any {
		if len(l.Rules) == 0 {
			return "none"
		}
		return strings.Join(l.Rules, ", ")
	}},
}

var whySessions = listing.Table[control.WhySession]{
	{Name: "session", Of: func(n *control.WhySession) any { return n.TSIH }},
	{Name: "target", Of: func(n *control.WhySession) any {
		if n.Target == "" {
			return "(discovery)"
		}
		return n.Target
	}},
	{Name: "user", Of: func(n *control.WhySession) any { return n.User }},
	{Name: "address", Of: func(n *control.WhySession) any { return n.Address }},
	{Name: "portal", Of: func(n *control.WhySession) any { return n.Portal }},
}

var whyFailures = listing.Table[control.WhyFailure]{
	{Name: "failed", Of: func(f *control.WhyFailure) any { return f.At.Local().Format(time.DateTime) }},
	{Name: "target", Of: func(f *control.WhyFailure) any { return f.Target }},
	{Name: "user", Of: func(f *control.WhyFailure) any { return f.User }},
	{Name: "address", Of: func(f *control.WhyFailure) any { return f.Address }},
	{Name: "reason", Of: func(f *control.WhyFailure) any { return f.Reason }},
}
