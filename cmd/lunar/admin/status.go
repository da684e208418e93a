package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
)

// asking is how a command finds the server that it asks.
type asking struct {
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
	Socket   string `type:"path" placeholder:"PATH" help:"Control socket of the server. Default: control.sock in the state directory."`
}

// dial connects to the server. The client is to be closed.
func (k asking) dial() (*control.Client, error) {
	socket, err := k.socket()
	if err != nil {
		return nil, err
	}
	return control.Dial(socket)
}

type statusCommand struct {
	asking `embed:""`
	JSON   bool `name:"json" help:"Print the answer of the control API."`
	Watch  bool `short:"w" help:"Repeat each second, with rates in place of sums, until you interrupt it or the server ends."`
}

// watchInterval is how often --watch asks.
const watchInterval = time.Second

// ClearScreen moves the cursor home and clears what is below (ECMA-48 CUP, ED).
const ClearScreen = "\x1b[H\x1b[J"

// Run asks the server and prints.
func (k statusCommand) Run(ctx context.Context, c cli.Console) error {
	if k.JSON && k.Watch {
		return errors.New("found --json and --watch, expected one of them")
	}
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	switch {
	case k.JSON:
		return printRaw(ctx, api, c, "/v1/status")
	case k.Watch:
		return watch(ctx, api, c)
	}
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	return show(c, &status, nil, "")
}

// printRaw prints what the API answers.
func printRaw(ctx context.Context, api *control.Client, c cli.Console, path string) error {
	text, err := api.Raw(ctx, path)
	if err == nil {
		_, err = c.Out.Write(text)
	}
	return err
}

func (k asking) socket() (string, error) {
	dir := k.StateDir
	if dir == "" && k.Socket == "" {
		var err error
		if dir, err = conf.DefaultStateDir(); err != nil {
			return "", err
		}
	}
	return control.SocketIn(dir, k.Socket), nil
}

// watch shows the status again and again until ctx ends.
func watch(ctx context.Context, api *control.Client, c cli.Console) error {
	stop, hangups, release := cli.OnSignal(ctx, "lunar", c.Err)
	defer release()
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
		case <-stop:
			return nil
		case <-hangups: // the terminal has gone
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
