package admin

import (
	"bytes"
	"context"
	"fmt"

	"lunar/control"
	"lunar/internal/cli"
)

type aluaCommand struct {
	Show aluaShowCommand `cmd:"" help:"Show the access states of each portal group."`
	Set  aluaSetCommand  `cmd:"" help:"Change the access state of a portal group. The change lasts until the next start; to keep it, write it to the configuration file."`
}

type aluaShowCommand struct {
	asking `embed:""`
	JSON   bool `name:"json" help:"Print the answer of the control API."`
}

// Run prints the access states.
func (k aluaShowCommand) Run(ctx context.Context, c cli.Console) error {
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	if k.JSON {
		return printRaw(ctx, api, c, "/v1/alua")
	}
	a, err := api.ALUA(ctx)
	if err != nil {
		return err
	}
	return tellALUA(c, &a)
}

type aluaSetCommand struct {
	asking    `embed:""`
	Group     string  `arg:"" help:"Name of the portal group."`
	State     *string `placeholder:"STATE" help:"optimized, non-optimized, standby, unavailable, offline or transitioning."`
	Preferred *bool   `negatable:"" help:"Mark the group as preferred, or not."`
	Volume    string  `placeholder:"NAME" help:"Only for this volume."`
}

// Run changes access states.
func (k aluaSetCommand) Run(ctx context.Context, c cli.Console) error {
	if k.State == nil && k.Preferred == nil {
		return fmt.Errorf("nothing to change: give --state, --preferred or --no-preferred")
	}
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	a, err := api.ChangeAccess(ctx, k.Group, control.AccessChange{Volume: k.Volume, State: k.State, Preferred: k.Preferred})
	if err != nil {
		return err
	}
	return tellALUA(c, &a)
}

func tellALUA(c cli.Console, a *control.ALUA) error {
	var page bytes.Buffer
	var rows []string
	for _, p := range a.Paths {
		preferred := "no"
		if p.Preferred {
			preferred = "yes"
		}
		rows = append(rows, cli.Row(p.Group, p.Tag, p.Volume, p.State, preferred))
	}
	cli.Table(&page, cli.Row("GROUP", "TAG", "VOLUME", "STATE", "PREFERRED"), rows)
	_, err := c.Out.Write(page.Bytes())
	return err
}
