package conf

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// Severity says what a change does to those who use the server and to their data.
type Severity int

// The severities. What is Destructive is only done when it is allowed by name.
const (
	Harmless    Severity = iota // nobody loses anything
	Disruptive                  // somebody notices, nothing is lost
	Destructive                 // data, or what somebody uses, is gone
)

// String is the word for a severity.
func (s Severity) String() string { return [...]string{"harmless", "disruptive", "destructive"}[s] }

// Allowed are the destructive changes that an administrator has asked for.
type Allowed struct {
	Yes    bool     // what hits sessions, or leaves data behind
	Shrink []string // volumes that may lose what is behind their new end
}

// Impact is what a change does.
type Impact struct {
	Severity Severity
	Key      string   // that Diff names, or one above; empty: it is about the whole configuration
	What     string   // is done to what the key is of
	Shrink   string   // destructive: the volume that Allowed.Shrink has to name; empty: it takes Allowed.Yes
	Sessions []string // that are hit, in words
}

// String is the change, by its key, with the sessions that it hits.
func (i *Impact) String() string {
	text := i.What
	if i.Key != "" {
		text = i.Key + ": " + text
	}
	if len(i.Sessions) == 0 {
		return text
	}
	return fmt.Sprintf("%s; sessions hit: %s", text, strings.Join(i.Sessions, ", "))
}

// Permits reports whether a change may be made.
func (a *Allowed) Permits(i *Impact) bool {
	switch {
	case i.Severity < Destructive:
		return true
	case i.Shrink != "":
		return slices.Contains(a.Shrink, i.Shrink)
	}
	return a.Yes
}

// Facts are what two configurations do not tell of the server that goes from one to
// the other.
type Facts struct {
	Stopped bool             // no server runs: what it kept in memory is gone, and it has no sessions
	Sizes   map[string]int64 // bytes that volumes have, or their files
	Stuck   map[string]int64 // bytes that volumes acknowledged and whose flushes fail
	Dirty   map[string]int64 // bytes that volumes acknowledged and the cache alone has
	Uses    []Use
}

// Impacts judges what leads from a configuration to another, the worst first. Both are
// in their normal form. What is harmless is left out.
func Impacts(from, to *Config, f Facts) (out []Impact) {
	out = append(out, emptied(from, to)...)
	for i := range from.Volumes {
		v := &from.Volumes[i]
		if now := to.Volume(v.Name); now != nil {
			out = append(out, f.withDirty(v, volumeChange(v, now, &f))...)
		} else {
			out = append(out, f.withDirty(v, volumeRemoval(v, &f))...)
		}
	}
	out = append(out, hits(from, to, f.Uses)...)
	slices.SortStableFunc(out, func(a, b Impact) int { return int(b.Severity - a.Severity) })
	return out
}

// emptied is a configuration without what the server is there for: a file that was
// cut off, or one of somewhere else.
func emptied(from, to *Config) (out []Impact) {
	if len(to.Volumes) == 0 && len(from.Volumes) > 0 {
		out = append(out, Impact{Severity: Destructive, Key: "volumes", What: fmt.Sprintf("it has no volumes, and would remove all that there are: %s", joinedNames(from.Volumes, func(v Volume) string { return v.Name }))})
	}
	if len(to.Targets) == 0 && len(from.Targets) > 0 {
		out = append(out, Impact{Severity: Destructive, Key: "targets", What: fmt.Sprintf("it has no targets, and would remove all that there are: %s", joinedNames(from.Targets, func(t Target) string { return t.Name }))})
	}
	return out
}

func joinedNames[T any](all []T, name func(T) string) string {
	var names []string
	for _, one := range all {
		names = append(names, name(one))
	}
	return strings.Join(names, ", ")
}

// volumeRemoval is about the data of a volume alone; hits is about who uses it.
func volumeRemoval(v *Volume, f *Facts) []Impact {
	key := Key("volumes", v.Name)
	if n := f.Stuck[v.Name]; n > 0 {
		return []Impact{{Severity: Destructive, Key: key, What: fmt.Sprintf("it is removed while its file or device does not take %d bytes that were acknowledged", n)}}
	}
	if v.Type == RAMVolume && !f.Stopped {
		return []Impact{{Severity: Destructive, Key: key, What: fmt.Sprintf("it is removed, and its %d bytes of data with it: they are in memory only", f.sizeOf(v))}}
	}
	if n := f.Dirty[v.Name]; n > 0 {
		return []Impact{{Severity: Disruptive, Key: key, What: fmt.Sprintf("it is removed once %v of dirty data that the cache has of volume %s are written", Size(n), v.Name)}}
	}
	return nil
}

// withDirty are what is done to a volume, with the data that only the cache has of it where
// that destroys something.
func (f *Facts) withDirty(v *Volume, all []Impact) []Impact {
	n := f.Dirty[v.Name]
	for i := range all {
		if n > 0 && all[i].Severity == Destructive {
			all[i].What += fmt.Sprintf("; the cache has %v of dirty data of volume %s", Size(n), v.Name)
		}
	}
	return all
}

func (f *Facts) sizeOf(v *Volume) int64 {
	if n, ok := f.Sizes[v.Name]; ok {
		return n
	}
	return int64(v.Size)
}

// volumeChange judges a volume that stays, by a table.
func volumeChange(from, to *Volume, f *Facts) (out []Impact) {
	for _, judge := range volumeJudges {
		if what := judge.what(from, to, f); what != "" {
			i := Impact{Severity: judge.severity, Key: Key("volumes", to.Name, judge.key), What: what}
			if judge.shrinks {
				i.Shrink = to.Name
			}
			out = append(out, i)
		}
	}
	return out
}

// volumeJudges say what a change of a volume's keys does; empty: nothing.
var volumeJudges = []struct {
	key      string // of the volume
	severity Severity
	shrinks  bool
	what     func(from, to *Volume, f *Facts) string
}{
	{key: "size", severity: Destructive, shrinks: true, what: cut},
	{key: "type", severity: Destructive, what: anotherDisk},
	{key: "driver", severity: Destructive, what: anotherDriver},
	{key: "image", severity: Destructive, what: anotherImage},
	{key: "read-only", severity: Disruptive, what: func(from, to *Volume, _ *Facts) string {
		return when(to.ReadOnly && !from.ReadOnly, "it becomes read-only")
	}},
	{key: "write", severity: Disruptive, what: func(from, to *Volume, f *Facts) string {
		n := f.Dirty[from.Name]
		return when(from.Write == WriteBack && to.Write != WriteBack && n > 0, fmt.Sprintf("%v of dirty data that the cache has of volume %s are written first", Size(n), from.Name))
	}},
	{key: "protection", severity: Disruptive, what: func(from, to *Volume, _ *Facts) string {
		return when(from.Protection != 0 && to.Protection == 0, "its protection information is kept no more")
	}},
	{key: "block-size", severity: Disruptive, what: func(from, to *Volume, _ *Facts) string {
		return when(from.BlockSize != to.BlockSize, fmt.Sprintf("its logical blocks have %d bytes, they had %d: initiators find a file system of the other size unreadable", to.BlockSize, from.BlockSize))
	}},
}

func when(is bool, what string) string {
	if is {
		return what
	}
	return ""
}

// cut is a volume that becomes smaller. What was in memory only is gone with a stop.
func cut(from, to *Volume, f *Facts) string {
	has, wants := f.sizeOf(from), int64(to.Size)
	keeps := to.Type == FileVolume || to.Type == RAMVolume && !f.Stopped
	if wants == 0 || wants >= has || !keeps {
		return ""
	}
	return fmt.Sprintf("it is cut from %d to %d bytes: %d bytes (%v) behind the new end are destroyed", has, wants, has-wants, Size(has-wants))
}

// anotherDisk is a volume that would show its initiators other data under the same
// identity. Whether another path is one the server finds out by looking there.
func anotherDisk(from, to *Volume, _ *Facts) string {
	return when(from.Type != to.Type, fmt.Sprintf("its type is %s, it was %s: initiators would find another disk under the same identity", to.Type, from.Type))
}

// anotherDriver is anotherDisk of a type that does not say what holds the bytes.
func anotherDriver(from, to *Volume, _ *Facts) string {
	return when(from.Type == to.Type && from.Driver != to.Driver, fmt.Sprintf("its driver is %s, it was %s: initiators would find another disk under the same identity", to.Driver, from.Driver))
}

// anotherImage is anotherDisk of an image, whose name says which it is.
func anotherImage(from, to *Volume, _ *Facts) string {
	return when(from.Type == to.Type && from.Image != to.Image, fmt.Sprintf("its image is %s, it was %s: initiators would find another disk under the same identity", to.Image, from.Image))
}

// Use is a session as changes concern it.
type Use struct {
	Name      string // in messages
	Initiator string
	Target    string
	Address   netip.Addr     // of the initiator
	Portal    netip.AddrPort // that it came by
	ISER      bool
	Proven    User
	LUNs      []LUN // that it sees
}

// hits says which sessions lose something, and what. One that has lost it already, and
// is about to log out, is not hit again.
func hits(from, to *Config, uses []Use) (out []Impact) {
	at := map[string]int{}
	add := func(one Impact, u *Use) {
		i, known := at[one.String()]
		if !known {
			i = len(out)
			at[one.String()] = i
			out = append(out, one)
		}
		out[i].Sessions = append(out[i].Sessions, u.Name)
	}
	for i := range uses {
		u := &uses[i]
		was, gone := from.reach(u)
		if gone != none {
			continue
		}
		rule, missing := to.reach(u)
		if missing != none {
			add(lost(from, to, u, was, rule, missing), u)
			continue
		}
		compareLUNs(accessKey(from, to, u, was, "luns"), u, was, rule, add)
		a, b := from.Target(u.Target), to.Target(u.Target)
		for _, way := range []struct{ key, was, now string }{{"redirect", a.Redirect, b.Redirect}, {"moved", a.Moved, b.Moved}} {
			if way.now != way.was && way.now != "" {
				add(Impact{Severity: Disruptive, Key: Key("targets", u.Target, way.key), What: "it sends its initiators elsewhere"}, u)
			}
		}
	}
	return out
}

// lost is what a session that there is no way for any more loses. It was admitted by was;
// rule is what asks for another proof.
func lost(from, to *Config, u *Use, was, rule *Access, m missing) Impact {
	i := Impact{Severity: Destructive, Key: Key("targets", u.Target)}
	switch m {
	case aTarget:
		i.What = "it is removed"
	case aPortal:
		i.Key, i.What = portalKey(from, to, u), fmt.Sprintf("portal %v is removed", u.Portal)
	case aPortalGroup:
		i.Key, i.What = Key(i.Key, "portal-groups"), fmt.Sprintf("it is not served through portal %v any more", u.Portal)
	case aRule:
		i.Key, i.What = accessKey(from, to, u, was, "auth-group"), fmt.Sprintf("target %s does not admit %s any more", u.Target, u.Initiator)
	case aProof:
		why, group := to.refusal(to.AuthGroup(rule.AuthGroup), u.Proven, u.Initiator)
		if i.Key = accessKey(from, to, u, was, "auth-group"); group != "" {
			i.Key = Key("auth-groups", group, "chap")
		}
		i.What = fmt.Sprintf("target %s does not admit %s any more%s: %s", u.Target, u.Initiator, u.Proven.said(), why)
	}
	return i
}

// portalKey is where a session's portal was.
func portalKey(from, to *Config, u *Use) string {
	list := "listen"
	if u.ISER {
		list = "listen-iser"
	}
	i := slices.IndexFunc(from.PortalGroups, func(g PortalGroup) bool { return g.serves(u) })
	g := from.PortalGroups[i].Name
	if !slices.ContainsFunc(to.PortalGroups, func(o PortalGroup) bool { return o.Name == g }) {
		return Key("portal-groups", g)
	}
	return Key("portal-groups", g, list)
}

// accessKey is what has changed the rules that a session has found its LUNs by: the
// target's own, or the auth group's that they name. own is the key of a target that has
// no access rules.
func accessKey(from, to *Config, u *Use, was *Access, own string) string {
	a, b := reflect.ValueOf(from.Target(u.Target).Access), reflect.ValueOf(to.Target(u.Target).Access)
	switch {
	case was.AuthGroup != "" && reflect.DeepEqual(a.Interface(), b.Interface()):
		return Key("auth-groups", was.AuthGroup)
	case isOpen(a) && isOpen(b):
		return Key("targets", u.Target, own)
	}
	return Key("targets", u.Target, "access")
}

// compareLUNs tells what a session sees no more, or otherwise.
func compareLUNs(key string, u *Use, before, rule *Access, add func(Impact, *Use)) {
	now := map[int]LUN{}
	for _, l := range rule.LUNs {
		now[l.LUN] = l
	}
	for _, was := range u.LUNs {
		if !slices.ContainsFunc(before.LUNs, func(l LUN) bool { return l.LUN == was.LUN && l.Volume == was.Volume }) {
			continue
		}
		what := fmt.Sprintf("LUN %d of target %s", was.LUN, u.Target)
		switch l, there := now[was.LUN]; {
		case !there:
			add(Impact{Severity: Destructive, Key: key, What: fmt.Sprintf("%s, volume %s, is removed", what, was.Volume)}, u)
		case l.Volume != was.Volume:
			add(Impact{Severity: Destructive, Key: key, What: fmt.Sprintf("%s becomes volume %s, it was %s", what, l.Volume, was.Volume)}, u)
		case l.ReadOnly && !was.ReadOnly:
			add(Impact{Severity: Disruptive, Key: key, What: what + " becomes read-only"}, u)
		}
	}
}

// missing is what a session lacks to find its LUNs.
type missing int

const (
	none missing = iota
	aTarget
	aPortal
	aPortalGroup // that the portal is of, in the target
	aRule        // of the target for the initiator
	aProof       // that the rule, or the initiator's name, asks for
)

// reach is the access rule for a session, or what is missing.
func (c *Config) reach(u *Use) (*Access, missing) {
	t := c.Target(u.Target)
	if t == nil {
		return nil, aTarget
	}
	var groups []string
	for i := range c.PortalGroups {
		if g := &c.PortalGroups[i]; g.serves(u) {
			groups = append(groups, g.Name)
		}
	}
	switch {
	case len(groups) == 0:
		return nil, aPortal
	case !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(t.PortalGroups, g) }):
		return nil, aPortalGroup
	}
	for i := range t.Access {
		a := &t.Access[i]
		g := c.AuthGroup(a.AuthGroup)
		if !a.Match.selects(u) || g != nil && !g.Match.selects(u) {
			continue
		}
		if why, _ := c.refusal(g, u.Proven, u.Initiator); why != "" {
			return a, aProof
		}
		return a, none
	}
	return nil, aRule
}

// serves reports whether one of the group's portals is the one that a session came by.
// Port 0 is any, and an interface has any address.
func (g *PortalGroup) serves(u *Use) bool {
	at := netip.AddrPortFrom(u.Portal.Addr().Unmap(), u.Portal.Port())
	is := func(p netip.AddrPort) bool {
		return (p.Port() == at.Port() || p.Port() == 0) &&
			(!p.Addr().IsValid() || p.Addr() == at.Addr() || p.Addr().IsUnspecified() && p.Addr().Is4() == at.Addr().Is4())
	}
	if u.ISER {
		return slices.ContainsFunc(g.ListenISER, func(p ISERPortal) bool { return is(p.Addr) })
	}
	return slices.ContainsFunc(g.Listen, is)
}

// selects reports whether a session's initiator is one that the match is about.
func (m *Match) selects(u *Use) bool {
	return (len(m.Initiators) == 0 || slices.ContainsFunc(m.Initiators, func(p string) bool { return matchesName(p, u.Initiator) })) &&
		(len(m.Networks) == 0 || slices.ContainsFunc(m.Networks, func(p netip.Prefix) bool { return p.Contains(u.Address.Unmap()) }))
}
