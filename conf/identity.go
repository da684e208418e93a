package conf

import (
	"fmt"
	"slices"
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
