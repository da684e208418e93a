package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lunar/control"
	"lunar/daemon/volumes"
	"lunar/target/scsi"
)

// changeAccess puts the access of portal groups into force that the file
// changes; what was changed while in use stays otherwise.
func (c *change) changeAccess() {
	changed := map[uint16]scsi.PortAccess{}
	for i := range c.cfg.PortalGroups {
		g := &c.cfg.PortalGroups[i]
		if was := c.old.PortalGroup(g.Name); was == nil || volumes.AccessOf(was) != volumes.AccessOf(g) || was.Tag != g.Tag {
			changed[g.Tag] = volumes.AccessOf(g)
		}
	}
	if len(changed) == 0 {
		return
	}
	for _, lu := range c.daemon.LogicalUnits() {
		if !lu.Shared() { // else it depends on who serves it
			lu.SetAccess(changed)
		}
	}
}

// ALUA implements server.Source.
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

// ChangeAccess implements server.Source.
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
		if change.Volume != "" && lu.Name() != change.Volume || change.Volume == "" && lu.Shared() {
			continue
		}
		if lu.Shared() {
			return refused(fmt.Sprintf("volume %q, which has owners", change.Volume), "a volume without; lunar cluster move gives it to another node")
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
