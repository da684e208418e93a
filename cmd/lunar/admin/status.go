package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type statusCommand struct {
	asking `embed:""`
	output `embed:""`
	Check  bool `help:"Print the first line alone. Exit status 5: the server is not ok."`
	Watch  bool `short:"w" help:"Repeat each second, with rates in place of sums, until you interrupt it or the server ends."`
}

// watchInterval is how often --watch asks.
const watchInterval = time.Second

// ClearScreen moves the cursor home and clears what is below (ECMA-48 CUP, ED).
const ClearScreen = "\x1b[H\x1b[J"

// Run asks the server and prints.
func (k statusCommand) Run(ctx context.Context, c cli.Console) error {
	if form, err := k.form(); err != nil || form != asTable && k.Watch {
		return cmp.Or(err, usage(fmt.Errorf("found --watch and -o %s, expected one of them", form)))
	}
	return k.ask(func(api *control.Client) error {
		switch {
		case k.Check:
			return check(ctx, api, c)
		case k.Watch:
			_, err := following(ctx, c, func(ctx context.Context) error { return watch(ctx, api, c) })
			return err
		}
		return printed(ctx, &k.output, api, c, "/v1/status", func(_ io.Writer, status *control.Status) error {
			return show(c, status, nil, "")
		})
	})
}

// check prints in a line how the server is.
func check(ctx context.Context, api *control.Client, c cli.Console) error {
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	state, line := status.Summary()
	if state != control.HealthOK {
		return &cli.ExitError{Status: cli.ExitNo, Err: errors.New(iscsiname.Printable(line))}
	}
	_, err = fmt.Fprintln(c.Out, iscsiname.Printable(line))
	return err
}

// watch shows the status again and again until ctx ends.
func watch(ctx context.Context, api *control.Client, c cli.Console) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var before *control.Status
	for {
		status, err := api.Status(ctx)
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
		if err := show(c, &status, before, ClearScreen); err != nil {
			return err
		}
		before = &status
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show prints a status behind a prefix; with another that is older, rates.
func show(c cli.Console, status, before *control.Status, prefix string) error {
	var page bytes.Buffer
	page.WriteString(prefix)
	if before == nil {
		render(&page, status, "")
	} else {
		rates := ratesOf(status, before)
		render(&page, &rates, "/s")
	}
	_, err := c.Out.Write(page.Bytes())
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}
