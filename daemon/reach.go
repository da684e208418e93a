package daemon

import (
	"slices"

	"lunar/conf"
	"lunar/control"
	"lunar/target"
	"lunar/target/scsi"
)

// GroupReach implements server.Source.
func (s *source) GroupReach() (all []control.Reach) {
	cfg, drains, units := s.daemon.config.Load(), s.daemon.Drains(), s.daemon.LogicalUnits()
	for i := range cfg.PortalGroups {
		all = append(all, reachOf(&cfg.PortalGroups[i], units, drains))
	}
	return all
}

// TargetReach implements server.Source.
func (s *source) TargetReach(name string) map[string][]control.Reach {
	cfg, drains := s.daemon.config.Load(), s.daemon.Drains()
	all := map[string][]control.Reach{}
	for _, t := range s.daemon.Targets() {
		of := cfg.Target(t.Name)
		if of == nil || name != "" && name != t.Name {
			continue
		}
		for i := range cfg.PortalGroups {
			if g := &cfg.PortalGroups[i]; slices.Contains(of.PortalGroups, g.Name) {
				all[t.Name] = append(all[t.Name], reachOf(g, t.Units, drains))
			}
		}
	}
	return all
}

// reachOf is how logical units are reached through a portal group.
func reachOf(g *conf.PortalGroup, units []*scsi.LogicalUnit, drains []target.Drain) control.Reach {
	out := control.Reach{Group: g.Name, States: []string{}, Draining: []control.PortalDrain{}}
	for _, lu := range units {
		out.States = append(out.States, lu.Access(g.Tag).State.String())
	}
	slices.Sort(out.States)
	out.States = slices.Compact(out.States)
	for _, d := range drains {
		if d.Tag != g.Tag {
			continue
		}
		one := control.PortalDrain{To: d.Redirect}
		if d.Portal.IsValid() {
			one.Portal = d.Portal.String()
		}
		out.Draining = append(out.Draining, one)
	}
	return out
}
