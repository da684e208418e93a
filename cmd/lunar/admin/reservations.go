package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type reservationsCommand struct {
	Show  reservationsShowCommand  `cmd:"" help:"Show which initiators are registered and hold reservations."`
	Clear reservationsClearCommand `cmd:"" help:"End all registrations and reservations of a volume. Hosts that were fenced off may then write again."`
}

type reservationsShowCommand struct {
	asking    `embed:""`
	selection `embed:""`
	Volume    string `arg:"" optional:"" help:"Only for this volume."`
}

// Run prints reservations.
func (k reservationsShowCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
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
		form, err := k.form()
		if err != nil {
			return err
		}
		return reservationsListed.print(c.Out, form, &r, k.options())
	})
}

type reservationsClearCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of the volume."`
	Yes    bool   `help:"Confirm. Without it, nothing is changed."`
}

// Run clears reservations.
func (k reservationsClearCommand) Run(ctx context.Context, c cli.Console) error {
	if !k.Yes {
		return destructive("nothing was changed: hosts that were fenced off from volume %s may write again once its reservations are gone; give --yes if none is left that must not", k.Volume)
	}
	return k.ask(func(api *control.Client) error {
		was, err := api.ClearReservations(ctx, k.Volume)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.Out, "There was:"); err != nil {
			return err
		}
		return reservationsListed.print(c.Out, asTable, &control.Reservations{Volumes: []control.VolumeReservations{was}}, &listing.Options{})
	})
}

// reservationRow is a registration, or a RESERVE of SPC-2, or a volume without either.
type reservationRow struct {
	*control.VolumeReservations
	registration *control.Registration
}

func reservationRows(volumes []control.VolumeReservations) (rows []reservationRow) {
	for i := range volumes {
		v := &volumes[i]
		if v.Reserve != "" || len(v.Registrations) == 0 {
			rows = append(rows, reservationRow{v, nil})
		}
		for j := range v.Registrations {
			rows = append(rows, reservationRow{v, &v.Registrations[j]})
		}
	}
	return rows
}

var reservationsListed = rowsOf[control.Reservations, reservationRow]{
	rows: func(r *control.Reservations) []reservationRow { return reservationRows(r.Volumes) },
	document: func(_ *control.Reservations, rows []reservationRow) any {
		out := control.Reservations{Volumes: []control.VolumeReservations{}}
		for _, r := range rows {
			if !slices.ContainsFunc(out.Volumes, func(v control.VolumeReservations) bool { return v.Volume == r.Volume }) {
				out.Volumes = append(out.Volumes, *r.VolumeReservations)
			}
		}
		return out
	},
	table: listing.Table[reservationRow]{
		{Name: "volume", Of: func(r *reservationRow) any { return r.Volume }},
		{Name: "type", Of: func(r *reservationRow) any {
			switch {
			case r.Elsewhere:
				return "ask " + cmp.Or(r.Node, "later")
			case r.registration != nil:
				return r.Type
			case r.Reserve != "":
				return "RESERVE"
			}
			return "none"
		}},
		{Name: "key", Of: registered(func(g *control.Registration) any { return g.Key })},
		{Name: "initiator", Of: func(r *reservationRow) any {
			if r.registration == nil {
				return r.Reserve
			}
			return r.registration.Initiator
		}},
		{Name: "target", Of: registered(func(g *control.Registration) any { return g.Target }), Wide: true},
		{Name: "group", Of: registered(func(g *control.Registration) any { return g.Group })},
		{Name: "holds", Of: func(r *reservationRow) any {
			switch {
			case r.registration != nil:
				return r.registration.Holder
			case r.Reserve != "":
				return true
			}
			return nil
		}},
	},
}

// registered is a column that only registrations have.
func registered(of func(*control.Registration) any) func(*reservationRow) any {
	return func(r *reservationRow) any {
		if r.registration == nil {
			return nil
		}
		return of(r.registration)
	}
}
