package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/internal/control"
	"lunar/target/scsi"
)

type aluaCommand struct {
	Show aluaShowCommand `cmd:"" help:"Show how volumes are reached through each portal group."`
	Set  aluaSetCommand  `cmd:"" help:"Change how volumes are reached through a portal group. It lasts until the next start, unless it is written to the configuration file."`
}

type aluaShowCommand struct {
	asking `embed:""`
	JSON   bool `name:"json" help:"Print what the control API answers."`
}

// Run prints the access states.
func (k aluaShowCommand) Run(ctx context.Context, c console) error {
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
	Preferred *bool   `negatable:"" help:"Tell initiators to prefer the group, or not to."`
	Volume    string  `placeholder:"NAME" help:"Of this volume only."`
}

// Run changes access states.
func (k aluaSetCommand) Run(ctx context.Context, c console) error {
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

func tellALUA(c console, a *control.ALUA) error {
	var page bytes.Buffer
	var rows []string
	for _, p := range a.Paths {
		preferred := "no"
		if p.Preferred {
			preferred = "yes"
		}
		rows = append(rows, row(p.Group, p.Tag, p.Volume, p.State, preferred))
	}
	table(&page, row("GROUP", "TAG", "VOLUME", "STATE", "PREFERRED"), rows)
	_, err := c.out.Write(page.Bytes())
	return err
}

// configuredAccess is how all volumes are reached at the start.
func configuredAccess(cfg *conf.Config) map[uint16]scsi.PortAccess {
	out := map[uint16]scsi.PortAccess{}
	for i := range cfg.PortalGroups {
		out[cfg.PortalGroups[i].Tag] = accessOf(&cfg.PortalGroups[i])
	}
	return out
}

// explicitAccess reports whether initiators may change access states.
func explicitAccess(cfg *conf.Config) bool {
	return slices.ContainsFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return g.ALUA.Explicit })
}

// accessOf translates; conf has checked the name.
func accessOf(g *conf.PortalGroup) scsi.PortAccess {
	state, _ := scsi.ParseAccessState(g.ALUA.State)
	return scsi.PortAccess{State: state, Preferred: g.ALUA.Preferred}
}

// changeAccess puts the access of portal groups into force that the file
// changes; what was changed while in use stays otherwise.
func (c *change) changeAccess() {
	changed := map[uint16]scsi.PortAccess{}
	for i := range c.cfg.PortalGroups {
		g := &c.cfg.PortalGroups[i]
		if was := c.old.PortalGroup(g.Name); was == nil || accessOf(was) != accessOf(g) || was.Tag != g.Tag {
			changed[g.Tag] = accessOf(g)
		}
	}
	if len(changed) == 0 {
		return
	}
	for _, lu := range c.daemon.LogicalUnits() {
		lu.SetAccess(changed)
	}
}

// ALUA implements control.Source.
func (s *source) ALUA() control.ALUA {
	out := control.ALUA{Paths: []control.AccessPath{}}
	units := s.daemon.LogicalUnits()
	slices.SortFunc(units, func(a, b *scsi.LogicalUnit) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, g := range s.daemon.config.Load().PortalGroups {
		for _, lu := range units {
			access := lu.Access(g.Tag)
			out.Paths = append(out.Paths, control.AccessPath{
				Group: g.Name, Tag: int(g.Tag), Volume: lu.Name(), State: access.State.String(), Preferred: access.Preferred,
			})
		}
	}
	return out
}

// ChangeAccess implements control.Source.
func (s *source) ChangeAccess(group string, change control.AccessChange) (control.ALUA, error) {
	refused := func(found, expected string) (control.ALUA, error) {
		return control.ALUA{}, &control.Refusal{What: "nothing was changed", Reasons: []control.Reason{{Text: "found " + found + ", expected " + expected}}}
	}
	g := s.daemon.config.Load().PortalGroup(group)
	if g == nil {
		return refused(fmt.Sprintf("no portal group %q", group), "one of the configuration")
	}
	var state scsi.AccessState
	if change.State != nil {
		var ok bool
		if state, ok = scsi.ParseAccessState(*change.State); !ok {
			return refused(fmt.Sprintf("state %q", *change.State), strings.Join(scsi.AccessStateNames(), ", "))
		}
	}
	s.accessing.Lock() // what differs is put into what there is
	defer s.accessing.Unlock()
	changed := 0
	for _, lu := range s.daemon.LogicalUnits() {
		if change.Volume != "" && lu.Name() != change.Volume {
			continue
		}
		access := lu.Access(g.Tag)
		if change.State != nil {
			access.State = state
		}
		if change.Preferred != nil {
			access.Preferred = *change.Preferred
		}
		lu.SetAccess(map[uint16]scsi.PortAccess{g.Tag: access})
		changed++
	}
	if changed == 0 && change.Volume != "" {
		return refused(fmt.Sprintf("no volume %q", change.Volume), "one of the configuration")
	}
	return s.ALUA(), nil
}
