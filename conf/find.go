package conf

import "sort"

// named finds the object of a name in a list that is sorted by names, as those of
// the normal form are; nil: there is none.
func named[T any](sorted []T, name string, nameOf func(*T) string) *T {
	i := sort.Search(len(sorted), func(i int) bool { return nameOf(&sorted[i]) >= name })
	if i == len(sorted) || nameOf(&sorted[i]) != name {
		return nil
	}
	return &sorted[i]
}

// AuthGroup returns the group of that name, or nil; the empty name has none.
func (c *Config) AuthGroup(name string) *AuthGroup {
	return named(c.AuthGroups, name, func(g *AuthGroup) string { return g.Name })
}

// PortalGroup returns the group of that name, or nil.
func (c *Config) PortalGroup(name string) *PortalGroup {
	return named(c.PortalGroups, name, func(g *PortalGroup) string { return g.Name })
}

// CephCluster returns the cluster of that name, or nil.
func (c *Config) CephCluster(name string) *CephCluster {
	return named(c.Ceph, name, func(k *CephCluster) string { return k.Name })
}

// Volume returns the volume of that name, or nil.
func (c *Config) Volume(name string) *Volume {
	return named(c.Volumes, name, func(v *Volume) string { return v.Name })
}

// Target returns the target of that name, or nil.
func (c *Config) Target(name string) *Target {
	return named(c.Targets, name, func(t *Target) string { return t.Name })
}
