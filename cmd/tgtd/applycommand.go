package main

import (
	"context"
	"errors"
	"fmt"

	"lunar/conf"
	"lunar/internal/control"
)

type applyCommand struct {
	asking     `embed:""`
	allowances `embed:""`
	File       string `arg:"" optional:"" type:"path" help:"Configuration file. If something in it needs a restart, nothing of it is put into force."`
	Config     string `short:"c" type:"path" placeholder:"FILE" help:"The same."`
	DryRun     bool   `short:"n" help:"Tell what would be changed, and change nothing. The exit status is 3 if something of it has to be allowed."`
}

// Run sends the file to the server.
func (k applyCommand) Run(ctx context.Context, c console) error {
	if k.File != "" && k.Config != "" || k.File+k.Config == "" {
		return errors.New("found no configuration file or two, expected one")
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
	with, lacking := k.allowances, false
	for _, i := range applied.Impacts {
		if lacking = lacking || !i.Permitted; !i.Permitted {
			with = with.more(i.Needs, i.Volume)
		}
	}
	if lacking {
		return &exitError{exitDestructive, errors.New("it would be refused; to do it: " + with.command(k.words()...))}
	}
	return nil
}

// words are the command line, without allowances.
func (k applyCommand) words() []string { return applyWords(k.StateDir, k.Socket, k.Config) }

func applyWords(stateDir, socket, file string) []string {
	words := []string{"apply"}
	if stateDir != "" {
		words = append(words, "--state-dir", stateDir)
	}
	if socket != "" {
		words = append(words, "--socket", socket)
	}
	return append(words, file)
}

// tell prints what has come of it.
func (k applyCommand) tell(c console, applied *control.Applied) {
	for _, w := range applied.Warnings {
		fmt.Fprintf(c.err, "warning: %s\n", printable(w))
	}
	if applied.Note != "" {
		fmt.Fprintf(c.err, "warning: %s\n", printable(applied.Note))
	}
	if len(applied.Changes) == 0 {
		fmt.Fprintf(c.out, "%s: nothing to change\n", k.Config)
	}
	for _, change := range applied.Changes {
		fmt.Fprintf(c.out, "%s\n", printable(change))
	}
	for _, i := range applied.Impacts {
		what := i.What
		if i.Key != "" {
			what = i.Key + ": " + what
		}
		fmt.Fprintf(c.out, "%s: %s\n", i.Severity, printable(what))
		for _, s := range i.Sessions {
			fmt.Fprintf(c.out, "  session %s\n", printable(s))
		}
	}
	for _, d := range applied.Drift {
		fmt.Fprintf(c.out, "stays as changed at run time: %s: %s\n", d.Kind, printable(d.What))
	}
	fmt.Fprintln(c.out, applied.Lasting)
}

// advised makes of a refusal for what is destructive one with the command that does it.
func (k applyCommand) advised(err error) error {
	var r *control.Refusal
	if !errors.As(err, &r) {
		return err
	}
	with, lacking := k.allowances, false
	plain := &control.Refusal{What: r.What, State: r.State}
	for _, reason := range r.Reasons {
		if more, ok := with.moreFor(reason); ok && r.State {
			with, lacking, reason.Place = more, true, ""
		}
		plain.Reasons = append(plain.Reasons, reason)
	}
	if !lacking {
		return err
	}
	return &exitError{exitDestructive, fmt.Errorf("%w\nto do it all the same: %s", plain, with.command(k.words()...))}
}
