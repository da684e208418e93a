package admin

import (
	"context"
	"errors"
	"fmt"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type applyCommand struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	File               string `arg:"" optional:"" type:"path" help:"Configuration file. If any change in it needs a restart, none is put into force."`
	Config             string `short:"c" type:"path" placeholder:"FILE" help:"The same."`
	DryRun             bool   `short:"n" help:"Show the changes without making them. Exit status 3: one of them needs a permission."`
}

// Run sends the file to the server.
func (k applyCommand) Run(ctx context.Context, c cli.Console) error {
	switch {
	case k.File+k.Config == "":
		return errors.New("found no configuration file, expected one: lunar apply FILE")
	case k.File != "" && k.Config != "":
		return errors.New("found two configuration files, expected one: lunar apply FILE")
	}
	k.Config += k.File
	text, err := conf.ReadFile(k.Config)
	if err != nil {
		return err
	}
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	applied, err := api.Apply(ctx, control.File{Name: k.Config, Text: string(text), DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink})
	if err != nil {
		return k.advised(err)
	}
	k.tell(c, &applied)
	with, lacking := k.Allowances, false
	for _, i := range applied.Impacts {
		if lacking = lacking || !i.Permitted; !i.Permitted {
			with = with.More(i.Needs, i.Volume)
		}
	}
	if lacking {
		return &cli.ExitError{Status: cli.ExitDestructive, Err: errors.New("it would be refused; to do it: " + k.command(with))}
	}
	return nil
}

// command is the command line with other allowances.
func (k applyCommand) command(with control.Allowances) string {
	return with.ApplyCommand(k.StateDir, k.Socket, k.Config)
}

// tell prints what has come of it.
func (k applyCommand) tell(c cli.Console, applied *control.Applied) {
	for _, w := range applied.Warnings {
		fmt.Fprintf(c.Err, "warning: %s\n", iscsiname.Printable(w))
	}
	if applied.Note != "" {
		fmt.Fprintf(c.Err, "warning: %s\n", iscsiname.Printable(applied.Note))
	}
	if len(applied.Changes) == 0 {
		fmt.Fprintf(c.Out, "%s: nothing to change\n", k.Config)
	}
	for _, change := range applied.Changes {
		fmt.Fprintf(c.Out, "%s\n", iscsiname.Printable(change))
	}
	for _, i := range applied.Impacts {
		what := i.What
		if i.Key != "" {
			what = i.Key + ": " + what
		}
		fmt.Fprintf(c.Out, "%s: %s\n", i.Severity, iscsiname.Printable(what))
		for _, s := range i.Sessions {
			fmt.Fprintf(c.Out, "  session %s\n", iscsiname.Printable(s))
		}
	}
	for _, d := range applied.Drift {
		fmt.Fprintf(c.Out, "stays as changed at run time: %s: %s\n", d.Kind, iscsiname.Printable(d.What))
	}
	fmt.Fprintln(c.Out, applied.Lasting)
}

// advised makes of a refusal for what is destructive one with the command that does it.
func (k applyCommand) advised(err error) error {
	var r *control.Refusal
	if !errors.As(err, &r) {
		return err
	}
	with, lacking := k.Allowances, false
	plain := &control.Refusal{What: r.What, State: r.State}
	for _, reason := range r.Reasons {
		if more, ok := with.MoreFor(reason); ok && r.State {
			with, lacking, reason.Place = more, true, ""
		}
		plain.Reasons = append(plain.Reasons, reason)
	}
	if !lacking {
		return err
	}
	return &cli.ExitError{Status: cli.ExitDestructive, Err: fmt.Errorf("%w\nto do it all the same: %s", plain, k.command(with))}
}
