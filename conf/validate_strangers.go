package conf

import (
	"fmt"
	"net/netip"
	"slices"
)

// warnOfStrangers tells of what lets in, or tells something to, those who prove nothing,
// and which key says that it is meant. All of it was served without a word before.
func (d *decoder) warnOfStrangers(c *Config) {
	d.warnOfReflection(c)
	d.warnOfDiscovery(c)
	for i := range c.Targets {
		d.warnOfOpenTarget(c, &c.Targets[i])
	}
}

// warnOfReflection tells of secrets that are used in both directions, in several groups:
// an answer of the target is then a proof of the user's (RFC 7143 section 9.2.1).
func (d *decoder) warnOfReflection(c *Config) {
	mutual := map[string]string{} // the group by the secret
	for _, g := range c.AuthGroups {
		if g.Mutual != nil && g.Mutual.Secret.told() {
			mutual[g.Mutual.Secret.Reveal()] = g.Name
		}
	}
	for _, g := range c.AuthGroups {
		for i, user := range g.CHAP {
			other, twice := mutual[user.Secret.Reveal()]
			if twice && other != g.Name && user.Secret.told() {
				d.warn(fmt.Sprintf("auth-groups.%s.chap[%d]", g.Name, i), "the secret of mutual of an auth-group, with which the target proves itself",
					"a secret of its own (RFC 7143 section 9.2.1); the next release refuses this one")
			}
		}
	}
}

// warnOfDiscovery tells of targets with paths that open discovery does not tell.
func (d *decoder) warnOfDiscovery(c *Config) {
	if g := d.groupOf[c.Discovery.AuthGroup]; g != nil && len(g.CHAP) > 0 || d.given("discovery.portals") {
		return
	}
	for _, t := range c.Targets {
		if len(t.PortalGroups) > 1 || len(t.PortalGroups) == 0 && len(c.PortalGroups) > 1 {
			d.warn("targets."+t.Name, "several portal groups, and discovery without CHAP, which tells the addresses of the one that it came by",
				"discovery.portals: own or all, or an auth-group with chap for discovery.auth")
			return
		}
	}
}

// warnOfOpenTarget tells of a target that everybody who reaches the machine may use,
// unless that is said outright.
func (d *decoder) warnOfOpenTarget(c *Config, t *Target) {
	path := "targets." + t.Name
	if !c.everywhere(t) || d.given(path+".auth-group") {
		return
	}
	for i := range t.Access {
		rule := &t.Access[i]
		if rule.AuthGroup == "" && !rule.Match.some() && !d.given(fmt.Sprintf("%s.access[%d].auth-group", path, i)) {
			d.warn(path, "a target on all addresses without authentication, for everyone who reaches them",
				"auth-group: none if that is meant, which the next release requires; else an auth-group, initiators or networks, or portals at certain addresses")
			return
		}
	}
}

// everywhere reports whether a target is reached at all addresses of the machine.
func (c *Config) everywhere(t *Target) bool {
	if len(c.PortalGroups) == 0 {
		return true // as the default is
	}
	return slices.ContainsFunc(c.PortalGroups, func(g PortalGroup) bool {
		if len(t.PortalGroups) > 0 && !slices.Contains(t.PortalGroups, g.Name) {
			return false
		}
		return slices.ContainsFunc(g.Listen, func(p netip.AddrPort) bool { return p.Addr().IsUnspecified() })
	})
}
