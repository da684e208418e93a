package conf

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// normalize sorts what has no order of its own and fills in what a target
// leaves out. The order of access rules and of CHAP algorithms has a meaning
// and stays.
func (c *Config) normalize() {
	slices.SortFunc(c.PortalGroups, func(a, b PortalGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.AuthGroups, func(a, b AuthGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Ceph, func(a, b CephCluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	if len(c.PortalGroups) == 0 {
		listen, _ := ParseListen(defaultListen)
		c.PortalGroups = []PortalGroup{{Name: "default", Tag: 1, ALUA: ALUA{State: "optimized"}, Listen: listen}}
	}
	for i := range c.PortalGroups {
		slices.SortFunc(c.PortalGroups[i].Listen, netip.AddrPort.Compare)
	}
	for i := range c.AuthGroups {
		g := &c.AuthGroups[i]
		slices.SortFunc(g.CHAP, func(a, b Credential) int { return strings.Compare(a.User, b.User) })
		for j := range g.CHAP {
			g.CHAP[j].Initiators = normalPatterns(g.CHAP[j].Initiators)
		}
		g.Match.normalize()
	}
	for i := range c.Targets {
		c.Targets[i].normalize(c.PortalGroups)
	}
	known := &c.Server.Limits.KnownNetworks
	slices.SortFunc(*known, netip.Prefix.Compare)
	*known = slices.Compact(*known)
	c.QoS.Rules, c.QoS.Groups = NormalRules(c.QoS.Rules, c.QoS.Groups)
}

func (m *Match) normalize() {
	m.Initiators = normalPatterns(m.Initiators)
	slices.SortFunc(m.Networks, netip.Prefix.Compare)
	m.Networks = slices.Compact(m.Networks)
}

func (t *Target) normalize(all []PortalGroup) {
	if len(t.PortalGroups) == 0 {
		for _, g := range all {
			t.PortalGroups = append(t.PortalGroups, g.Name)
		}
	}
	slices.Sort(t.PortalGroups)
	for i := range t.Access {
		t.Access[i].Match.normalize()
		// Rules may share the target's list, so that it is sorted in a copy.
		t.Access[i].LUNs = slices.SortedFunc(slices.Values(t.Access[i].LUNs), func(a, b LUN) int { return cmp.Compare(a.LUN, b.LUN) })
	}
}

// InStateDir resolves the relative paths of volumes below dir.
func (c *Config) InStateDir(dir string) {
	for i := range c.Volumes {
		v := &c.Volumes[i]
		paths := []*string{&v.Path, &v.ProtectionFile, &v.Map, &v.Excess}
		for k := range v.Members {
			paths = append(paths, &v.Members[k])
		}
		if e := v.Encryption; e != nil {
			paths = append(paths, &e.KeyFile, &e.OldKeyFile, &e.HeaderFile)
		}
		for _, path := range paths {
			if *path != "" && !filepath.IsAbs(*path) {
				*path = filepath.Join(dir, *path)
			}
		}
	}
}
