package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"lunar/internal/control"
	"lunar/target/scsi"
	"lunar/target/scsi/reservation"
)

type reservationsCommand struct {
	Show  reservationsShowCommand  `cmd:"" help:"Show which initiators are registered and hold reservations."`
	Clear reservationsClearCommand `cmd:"" help:"End all registrations and reservations of a volume. Hosts that were fenced off may write again."`
}

type reservationsShowCommand struct {
	asking `embed:""`
	Volume string `arg:"" optional:"" help:"Of this volume only."`
	JSON   bool   `name:"json" help:"Print what the control API answers for all volumes."`
}

// Run prints reservations.
func (k reservationsShowCommand) Run(ctx context.Context, c console) error {
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
	Yes    bool   `help:"Do it. Without it, nothing is changed."`
}

// Run clears reservations.
func (k reservationsClearCommand) Run(ctx context.Context, c console) error {
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
	if _, err := fmt.Fprintln(c.out, "There was:"); err != nil {
		return err
	}
	return tellReservations(c, was)
}

func tellReservations(c console, volumes ...control.VolumeReservations) error {
	var page bytes.Buffer
	var rows []string
	for _, v := range volumes {
		if v.Reserve != "" {
			rows = append(rows, row(v.Volume, "RESERVE", "-", v.Reserve, "-", "yes"))
		}
		for _, r := range v.Registrations {
			holder := "no"
			if r.Holder {
				holder = "yes"
			}
			rows = append(rows, row(v.Volume, v.Type, r.Key, r.Initiator, r.Group, holder))
		}
		if v.Reserve == "" && len(v.Registrations) == 0 {
			rows = append(rows, row(v.Volume, "none", "-", "-", "-", "-"))
		}
	}
	table(&page, row("VOLUME", "TYPE", "KEY", "INITIATOR", "GROUP", "HOLDS"), rows)
	_, err := c.out.Write(page.Bytes())
	return err
}

// Reservations implements control.Source.
func (s *source) Reservations() control.Reservations {
	out := control.Reservations{Volumes: []control.VolumeReservations{}}
	for _, lu := range s.daemon.LogicalUnits() {
		state, reserved := lu.Reservations()
		out.Volumes = append(out.Volumes, reservationsOf(lu, state, reserved))
	}
	slices.SortFunc(out.Volumes, func(a, b control.VolumeReservations) int { return cmp.Compare(a.Volume, b.Volume) })
	return out
}

func reservationsOf(lu *scsi.LogicalUnit, s *reservation.State, reserved reservation.Nexus) control.VolumeReservations {
	out := control.VolumeReservations{
		Volume: lu.Name(), Type: s.Type().String(), Generation: s.Generation(), Persistent: s.Persist(),
		Registrations: []control.Registration{}, Reserve: reserved.Initiator,
	}
	for _, r := range s.Registrations() {
		out.Registrations = append(out.Registrations, control.Registration{
			Initiator: r.Initiator, Target: r.Target, Group: int(r.Port), Key: fmt.Sprintf("0x%016x", r.Key), Holder: s.Holds(r.Nexus),
		})
	}
	return out
}

// ClearReservations implements control.Source.
func (s *source) ClearReservations(volume string) (control.VolumeReservations, error) {
	units := s.daemon.LogicalUnits()
	i := slices.IndexFunc(units, func(lu *scsi.LogicalUnit) bool { return lu.Name() == volume })
	if i < 0 {
		return control.VolumeReservations{}, &control.Refusal{
			What: "nothing was changed", Reasons: []control.Reason{{Text: fmt.Sprintf("found no volume %q, expected one of the configuration", volume)}},
		}
	}
	before, reserved, err := units[i].ClearReservations()
	if err != nil {
		return control.VolumeReservations{}, fmt.Errorf("the reservations of volume %s stay: %w", volume, err)
	}
	was := reservationsOf(units[i], before, reserved)
	s.changes.log.Warn("an administrator has cleared the reservations of a volume: hosts that were fenced off may write again",
		"volume", volume, "type", was.Type, "registrations", len(was.Registrations), "reserve", was.Reserve)
	return was, nil
}
