package admin

import (
	"context"
	"errors"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type aluaCommand struct {
	Show aluaShowCommand `cmd:"" aliases:"list" help:"Show the access states of each portal group."`
	Set  aluaSetCommand  `cmd:"" help:"Change the access state of a portal group. The change lasts until the next start; lunar save keeps it."`
}

type aluaShowCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

var pathsListed = rowsOf[control.ALUA, control.AccessPath]{
	rows:     func(a *control.ALUA) []control.AccessPath { return a.Paths },
	document: func(_ *control.ALUA, rows []control.AccessPath) any { return control.ALUA{Paths: rows} },
	table:    pathTable,
}

// Run prints the access states.
func (k aluaShowCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error { return list(ctx, &k.selection, api, c, control.AluaPath, pathsListed) })
}

var pathTable = listing.Table[control.AccessPath]{
	{Name: "group", Of: func(p *control.AccessPath) any { return p.Group }},
	{Name: "tag", Of: func(p *control.AccessPath) any { return p.Tag }},
	{Name: "volume", Of: func(p *control.AccessPath) any { return p.Volume }},
	{Name: "state", Of: func(p *control.AccessPath) any { return p.State }},
	{Name: "preferred", Of: func(p *control.AccessPath) any { return p.Preferred }},
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
		return usage(errors.New("nothing to change: give --state, --preferred or --no-preferred"))
	}
	return k.ask(func(api *control.Client) error {
		a, err := api.ChangeAccess(ctx, k.Group, control.AccessChange{Volume: k.Volume, State: k.State, Preferred: k.Preferred})
		if err != nil {
			return err
		}
		return pathTable.Write(c.Out, a.Paths, &listing.Options{})
	})
}
