package conf

import (
	"fmt"
	"slices"
	"strings"
)

// User is who an initiator has proven to be: a CHAP user of an auth group. The zero
// value has proven nothing.
type User struct{ Group, Name string }

// said is how messages tell of a proof.
func (u User) said() string {
	if u == (User{}) {
		return " without CHAP"
	}
	return fmt.Sprintf(" as user %s of auth-group %s", quote(u.Name), u.Group)
}

// ownersOf are the users whose an initiator name is. Nobody else may log in with it.
func (c *Config) ownersOf(name string) (owners []User) {
	for i := range c.AuthGroups {
		g := &c.AuthGroups[i]
		for j := range g.CHAP {
			if u := &g.CHAP[j]; slices.ContainsFunc(u.Initiators, func(p string) bool { return matchesName(p, name) }) {
				owners = append(owners, User{g.Name, u.User})
			}
		}
	}
	return owners
}

// user is a CHAP user, or nil.
func (c *Config) user(who User) *Credential {
	g := c.AuthGroup(who.Group)
	if g == nil {
		return nil
	}
	if i := slices.IndexFunc(g.CHAP, func(u Credential) bool { return u.User == who.Name }); i >= 0 {
		return &g.CHAP[i]
	}
	return nil
}

// refusal is why who has proven to be a user, or nothing, may not use an initiator name
// where an auth group is asked for, and the auth group whose users' names say so; empty:
// it may. It is the rule of TargetConfig.admits.
func (c *Config) refusal(g *AuthGroup, who User, name string) (why, group string) {
	if g != nil && len(g.CHAP) > 0 && (who.Group != g.Name || c.user(who) == nil) {
		return fmt.Sprintf("auth-group %s asks for one of its users", g.Name), ""
	}
	owners, u := c.ownersOf(name), c.user(who)
	switch {
	case slices.Contains(owners, who):
		return "", ""
	case len(owners) > 0:
		return "initiators of another user has the name", owners[0].Group
	case u != nil && len(u.Initiators) > 0:
		return "initiators of the user has not the name", who.Group
	}
	return "", ""
}

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
