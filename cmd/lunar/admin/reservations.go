package admin

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"lunar/control"
	"lunar/internal/cli"
)

type reservationsCommand struct {
	Show  reservationsShowCommand  `cmd:"" help:"Show which initiators are registered and hold reservations."`
	Clear reservationsClearCommand `cmd:"" help:"End all registrations and reservations of a volume. Hosts that were fenced off may then write again."`
}

type reservationsShowCommand struct {
	asking `embed:""`
	Volume string `arg:"" optional:"" help:"Only for this volume."`
	JSON   bool   `name:"json" help:"Print the answer of the control API, for all volumes."`
}

// Run prints reservations.
func (k reservationsShowCommand) Run(ctx context.Context, c cli.Console) error {
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	if k.JSON {
		return printRaw(ctx, api, c, "/v1/reservations")
	}
	r, err := api.Reservations(ctx)
	if err != nil {
		return err
	}
	if k.Volume != "" {
		r.Volumes = slices.DeleteFunc(r.Volumes, func(v control.VolumeReservations) bool { return v.Volume != k.Volume })
		if len(r.Volumes) == 0 {
			return fmt.Errorf("found no volume %q", k.Volume)
		}
	}
	return tellReservations(c, r.Volumes...)
}

type reservationsClearCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of the volume."`
	Yes    bool   `help:"Confirm. Without it, nothing is changed."`
}

// Run clears reservations.
func (k reservationsClearCommand) Run(ctx context.Context, c cli.Console) error {
	if !k.Yes {
		return fmt.Errorf("nothing was changed: hosts that were fenced off from volume %s may write again once its reservations are gone; give --yes if none is left that must not", k.Volume)
	}
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	was, err := api.ClearReservations(ctx, k.Volume)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c.Out, "There was:"); err != nil {
		return err
	}
	return tellReservations(c, was)
}

func tellReservations(c cli.Console, volumes ...control.VolumeReservations) error {
	var page bytes.Buffer
	var rows []string
	for _, v := range volumes {
		if v.Reserve != "" {
			rows = append(rows, cli.Row(v.Volume, "RESERVE", "-", v.Reserve, "-", "yes"))
		}
		for _, r := range v.Registrations {
			holder := "no"
			if r.Holder {
				holder = "yes"
			}
			rows = append(rows, cli.Row(v.Volume, v.Type, r.Key, r.Initiator, r.Group, holder))
		}
		if v.Reserve == "" && len(v.Registrations) == 0 {
			rows = append(rows, cli.Row(v.Volume, "none", "-", "-", "-", "-"))
		}
	}
	cli.Table(&page, cli.Row("VOLUME", "TYPE", "KEY", "INITIATOR", "GROUP", "HOLDS"), rows)
	_, err := c.Out.Write(page.Bytes())
	return err
}
