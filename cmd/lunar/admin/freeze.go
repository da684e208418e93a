package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// freezing are the commands of "lunar volume" that freeze and thaw.
type freezing struct {
	Freeze freezeCommand `cmd:"" help:"Hold the commands of volumes, with everything that was acknowledged on their files and devices, so that a snapshot or copy below them is of one moment."`
	Thaw   thawCommand   `cmd:"" help:"Let the commands of a frozen volume go on, and of those that were frozen with it. It fails if they have thawed by themselves: the copy is not of one moment then."`
}

type freezeCommand struct {
	asking   `embed:""`
	Volumes  []string      `arg:"" help:"Names of volumes. Several are frozen at one moment."`
	Deadline time.Duration `default:"20s" help:"After which they thaw by themselves, up to 5m. Initiators give up commands after 30 s or more."`
	Exec     string        `placeholder:"COMMAND" help:"Command line for /bin/sh that makes the snapshot: the volumes thaw when it has ended, or when this program is gone. It fails if it did, or if the deadline passed meanwhile."`
}

// Run freezes volumes, and with a command makes a snapshot and thaws them.
func (k freezeCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		request := control.Freeze{With: k.Volumes[1:], Deadline: k.Deadline.String(), Attended: k.Exec != ""}
		if k.Exec == "" {
			return k.freeze(ctx, api, c, request)
		}
		f, err := api.Freeze(ctx, k.Volumes[0], request)
		if err != nil {
			return err
		}
		until, cancel := context.WithDeadline(ctx, f.Until)
		defer cancel()
		ran := attended(stayEvery, func() { _, _ = api.Raw(ctx, "/healthz") }, func() error { return runShell(until, k.Exec, c) })
		t, err := api.Thaw(ctx, k.Volumes[0])
		if err != nil {
			return errors.Join(ran, fmt.Errorf("what the command has copied is not of one moment: %w", err))
		}
		if ran != nil {
			return ran
		}
		return tellThawed(c.Out, t)
	})
}

// freeze freezes volumes for somebody who makes the copy by himself.
func (k freezeCommand) freeze(ctx context.Context, api *control.Client, c cli.Console, request control.Freeze) error {
	f, _, err := made(ctx, asynchronous{}, api, c,
		func() (control.Frozen, error) { return api.Freeze(ctx, k.Volumes[0], request) },
		func() (control.Job, error) { return api.StartFreeze(ctx, k.Volumes[0], request) })
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "Frozen: %s. They thaw by themselves at %s: lunar volume thaw %s before.\n", strings.Join(f.Volumes, ", "), f.Until.Local().Format(time.TimeOnly), f.Volumes[0])
	}
	return err
}

// stayEvery is how often a server that attends to its client is asked something: after a
// minute without that it closes the connection, and the volumes thaw.
const stayEvery = 15 * time.Second

// attended runs something, and asks meanwhile.
func attended(every time.Duration, ask func(), run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			ask()
		}
	}
}

// runShell runs a command line, and what it says is told.
func runShell(ctx context.Context, line string, c cli.Console) error {
	run := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	run.Stdout, run.Stderr = c.Out, c.Err
	run.WaitDelay = time.Second
	if err := run.Run(); err != nil {
		return fmt.Errorf("the command failed: %w", err)
	}
	return nil
}

func tellThawed(w io.Writer, t control.Thawed) error {
	_, err := fmt.Fprintf(w, "Thawed: %s. Commands were held for %s; a copy is of %s.\n", iscsiname.Printable(strings.Join(t.Volumes, ", ")), t.Held, t.At.Local().Format(time.DateTime))
	return err
}

type thawCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of a frozen volume."`
}

// Run thaws volumes.
func (k thawCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		t, err := api.Thaw(ctx, k.Volume)
		if err != nil {
			return err
		}
		return tellThawed(c.Out, t)
	})
}
