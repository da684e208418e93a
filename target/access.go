package target

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"lunar/target/login"
	"lunar/target/scsi"
)

// Initiator is who asks: the name that it claims, the address that it comes from,
// and the user that it has proven to be.
type Initiator struct {
	Name  string      // iSCSI name, normalized to lower case
	Addr  netip.Addr  // source address, IPv4-mapped ones unmapped
	Proof login.Proof // zero before the end of a login, and without CHAP
}

// AccessRule grants initiators access to a target. Empty Initiators match
// every name, empty Networks every address.
type AccessRule struct {
	Initiators []string       // iSCSI names or globs (* ? [...])
	Networks   []netip.Prefix // source networks
	Auth       login.Auth     // how the initiator proves who it is
	LUNs       []LUNMapping   // what it sees, in ascending order of LUN
}

// LUNMapping shows a logical unit to an initiator under a number.
type LUNMapping struct {
	LUN      uint16
	LU       *scsi.LogicalUnit
	ReadOnly bool
}

// Matches reports whether the rule speaks of the initiator.
func (r *AccessRule) Matches(i Initiator) bool {
	return r.matchesName(i.Name) && r.matchesAddr(i.Addr)
}

func (r *AccessRule) matchesName(name string) bool {
	return len(r.Initiators) == 0 || matchesName(r.Initiators, name)
}

// matchesName reports whether one of the names or globs matches.
func matchesName(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		glob = strings.ToLower(glob)
		ok, err := path.Match(glob, name)
		return glob == name || err == nil && ok
	})
}

func (r *AccessRule) matchesAddr(a netip.Addr) bool {
	return len(r.Networks) == 0 || slices.ContainsFunc(r.Networks, func(p netip.Prefix) bool {
		return p.Contains(a)
	})
}

// ruleFor returns the first rule of the target that matches, or nil.
func (c *TargetConfig) ruleFor(i Initiator) *AccessRule {
	if r := c.firstRule(i); r >= 0 {
		return &c.Access[r]
	}
	return nil
}

// firstRule is the index in Access of the first rule that matches, or -1.
func (c *TargetConfig) firstRule(i Initiator) int {
	for r := range c.Access {
		if c.Access[r].Matches(i) {
			return r
		}
	}
	return -1
}
