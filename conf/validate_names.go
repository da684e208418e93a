package conf

import (
	"fmt"
	"slices"
	"strings"
)

// warnFreeNames tells where something goes by initiator names that several may claim.
func (d *decoder) warnFreeNames(c *Config) {
	const wanted = "initiators in each entry of chap"
	for i := range c.AuthGroups {
		g := &c.AuthGroups[i]
		if free := slices.ContainsFunc(g.CHAP, func(u Credential) bool { return len(u.Initiators) == 0 }); !free || len(g.CHAP) < 2 {
			continue
		}
		if what := c.goesByNames(func(a *Access) bool { return a.AuthGroup == g.Name }); what != "" {
			d.warn("auth-groups."+g.Name+".chap", "users without initiators, who may log in with each other's initiator names; "+what+" goes by these", wanted)
		}
	}
	for i := range c.Targets {
		d.warnOpenNames(c, &c.Targets[i])
	}
}

// warnOpenNames is warnFreeNames for a target that somebody may use without a proof.
func (d *decoder) warnOpenNames(c *Config, t *Target) {
	open := func(a *Access) bool { g := d.groupOf[a.AuthGroup]; return g == nil || len(g.CHAP) == 0 }
	for i := range t.Access {
		a := &t.Access[i]
		if !open(a) {
			continue
		}
		path := fmt.Sprintf("targets.%s.access[%d]", t.Name, i)
		for _, name := range a.Match.Initiators {
			if !strings.ContainsAny(name, "*?") && len(c.ownersOf(name)) > 0 {
				d.warn(path+".initiators", quote(name)+", which is a user's and needs a proof", "an auth-group with the user in its chap")
			}
		}
		if what := c.goesByNames(func(b *Access) bool { return a == b }); what != "" {
			d.warn(path, "no chap, so that everybody may log in with any initiator name; "+what+" goes by these", "an auth-group with chap, and initiators in its entries")
			return
		}
	}
}

// goesByNames is the first key that decides by initiator names whom access rules
// select, or what they may; empty: there is none.
func (c *Config) goesByNames(of func(*Access) bool) string {
	some := false
	for i := range c.Targets {
		for j := range c.Targets[i].Access {
			a := &c.Targets[i].Access[j]
			if !of(a) {
				continue
			}
			some = true
			if len(a.Match.Initiators) > 0 {
				return fmt.Sprintf("targets.%s.access[%d].initiators", c.Targets[i].Name, j)
			}
			if k := slices.IndexFunc(c.AuthGroups, func(g AuthGroup) bool { return g.Name == a.AuthGroup && len(g.Match.Initiators) > 0 }); k >= 0 {
				return "auth-groups." + a.AuthGroup + ".initiators"
			}
		}
	}
	if some && len(c.QoS.Rules) > 0 {
		return rulePath(0)
	}
	return ""
}
