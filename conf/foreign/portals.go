package foreign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"lunar/conf"
)

// portalGroups makes groups of the portals of all targets, so that each target has the
// groups that it was reached through, with their tags, and no portal is in two of them.
func (b *builder) portalGroups() {
	b.coverPortals()
	users, tags := map[portal][]int{}, map[portal][]int{} // users are indexes of targets
	for n, t := range b.from.targets {
		for _, set := range t.portals {
			for _, p := range set.at {
				if !slices.Contains(users[p], n) {
					users[p], tags[p] = append(users[p], n), append(tags[p], set.tag)
				}
			}
		}
	}
	bySet := map[string][]portal{}
	for p, of := range users {
		key := fmt.Sprint(of, tags[p])
		bySet[key] = append(bySet[key], p)
	}
	keys := make([]string, 0, len(bySet))
	for key := range bySet {
		slices.SortFunc(bySet[key], comparePortals)
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y string) int { return comparePortals(bySet[x][0], bySet[y][0]) })
	for _, key := range keys {
		b.portalGroup(bySet[key], users[bySet[key][0]], len(keys) == 1)
	}
}

func comparePortals(x, y portal) int {
	if c := x.addr.Compare(y.addr); c != 0 || x.rdma == y.rdma {
		return c
	}
	if x.rdma {
		return 1
	}
	return -1
}

// coverPortals puts the portal of all addresses in the place of those that it covers.
func (b *builder) coverPortals() {
	everywhere := map[portal]bool{}
	for _, t := range b.from.targets {
		for _, set := range t.portals {
			for _, p := range set.at {
				if p.addr.Addr().IsUnspecified() {
					everywhere[p] = true
				}
			}
		}
	}
	for _, t := range b.from.targets {
		for _, set := range t.portals {
			for i, p := range set.at {
				any := p
				any.addr = netip.AddrPortFrom(netip.IPv6Unspecified(), p.addr.Port())
				if p.addr.Addr().Is4() {
					any.addr = netip.AddrPortFrom(netip.IPv4Unspecified(), p.addr.Port())
				}
				if p != any && everywhere[any] {
					b.from.note(set.home, fmt.Sprintf("the portal %v is one of the portal %v of another target, which is taken for both", p.addr, any.addr), "")
					set.at[i] = any
				}
			}
		}
	}
}

// portalGroup makes one, and gives it to its targets.
func (b *builder) portalGroup(all []portal, of []int, only bool) {
	tag, place, named := b.tagOf(all, of)
	name := fmt.Sprintf("portals-%d", tag)
	if only {
		name = "portals"
	}
	g := conf.PortalGroup{Name: name, Tag: uint16(tag), ALUA: conf.ALUA{State: "optimized"}}
	for _, p := range all {
		if p.rdma {
			g.ListenISER = append(g.ListenISER, conf.ISERPortal{Addr: p.addr})
		} else {
			g.Listen = append(g.Listen, p.addr)
		}
	}
	if len(named) > 0 && !slices.Equal(named, []int{tag}) {
		b.from.note(place, fmt.Sprintf("these portals have the portal group tag %d; initiators knew them by %s", tag, strings.Trim(fmt.Sprint(named), "[]")),
			"hosts that hold persistent reservations register again")
	}
	b.to.PortalGroups = append(b.to.PortalGroups, g)
	for _, n := range of {
		b.groupsOf[n] = append(b.groupsOf[n], name)
	}
}

// tagOf is the tag that all targets have for these portals if it is free, else the next
// one that is; and those that they have.
func (b *builder) tagOf(all []portal, of []int) (tag int, place string, named []int) {
	for _, n := range of {
		for _, set := range b.from.targets[n].portals {
			if set.tag > 0 && set.tag <= 65535 && slices.Contains(set.at, all[0]) {
				named, place = append(named, set.tag), set.home
			}
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	taken := func(tag int) bool {
		return slices.ContainsFunc(b.to.PortalGroups, func(g conf.PortalGroup) bool { return int(g.Tag) == tag })
	}
	tag = 1
	if len(named) > 0 {
		tag = named[0]
	}
	for taken(tag) {
		tag = tag%65535 + 1
	}
	return tag, place, named
}
