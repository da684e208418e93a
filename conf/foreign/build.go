package foreign

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
)

// builder makes a configuration of a server.
type builder struct {
	from     *server
	to       *conf.Config
	names    map[string]string // of volumes, by id
	blocked  map[string]bool   // names of volumes that are taken
	auths    map[string]string // names of auth groups, by what is in them
	groupsOf map[int][]string  // portal groups of targets, by index
	places   map[string]string // of what has been made, by its key
	sizes    map[string]int64
}

// build is everything that can be judged without conf.
func build(s *server) *builder {
	b := &builder{
		from: s, to: conf.Defaults(), names: map[string]string{}, blocked: map[string]bool{}, auths: map[string]string{},
		groupsOf: map[int][]string{}, places: map[string]string{}, sizes: map[string]int64{},
	}
	for _, v := range s.volumes {
		b.volume(v)
	}
	b.portalGroups()
	for n, t := range s.targets {
		b.target(n, t)
	}
	b.limits()
	if s.discovery != nil {
		b.to.Discovery.AuthGroup = b.auth(s.discovery)
	}
	return b
}

// limits are those that initiators have agreed on.
func (b *builder) limits() {
	l := &b.to.Server.Limits
	switch depth := b.from.depth; {
	case depth > l.QueueDepth:
		l.QueueDepth = min(depth, 4096)
	case depth > 0 && depth < l.QueueDepth:
		b.from.note("", fmt.Sprintf("sessions had up to %d commands; Lunar's default of %d was taken", depth, l.QueueDepth), "set server.limits.queue-depth if fewer are wanted")
	}
	l.ErrorRecoveryLevel = min(max(b.from.recovery, 0), 2)
	l.MaxConnections = min(max(b.from.joined, 1), 64)
}

// volume makes a volume of one.
func (b *builder) volume(v *volume) {
	if _, again := b.names[v.id]; again {
		b.from.note(v.place, "a second disk of the same name was not carried over", "give it a volume of its own")
		return
	}
	if isOdd(v.path) || isOdd(strings.TrimRight(v.serial, "\x00")) {
		b.from.note(v.place, "a disk whose path or serial number has control characters was not carried over", "")
		return
	}
	name := b.nameOf(v)
	out := conf.Volume{
		Name: name, Type: v.kind, Path: v.path, BlockSize: v.block, Write: conf.WriteThrough, ReadOnly: v.readOnly, Removable: v.removable,
		Serial: v.serial, Vendor: cut(v.vendor, 8), Product: cut(v.product, 16), Revision: cut(v.revision, 4),
	}
	if out.BlockSize == 0 {
		out.BlockSize = 512
	}
	if out.Type == conf.FileVolume && isDevice(out.Path) {
		out.Type = conf.BlockVolume
	}
	switch out.Type {
	case conf.RAMVolume, conf.NullVolume:
		out.Path, out.Size = "", conf.Size(v.size)
	case conf.BlockVolume:
		out.Direct = true
	}
	if v.stable && out.Path != "" {
		out.Write = conf.WriteSync
	}
	for _, d := range v.designators {
		out.Designators = append(out.Designators, hex.EncodeToString(d))
	}
	if v.serial == "" {
		b.from.note(v.place, "it has no serial number; initiators see another one", "")
	}
	if v.size > 0 && out.Path != "" {
		b.sizes[name] = v.size
	}
	b.names[v.id], b.places["volumes."+name] = name, v.place
	b.to.Volumes = append(b.to.Volumes, out)
}

// cut is as much of a text as a field of INQUIRY has, without the blanks around it.
func cut(text string, n int) string { return strings.TrimSpace(oneLine(text[:min(len(text), n)])) }

// isOdd reports whether a text has characters that no line of a file has.
func isOdd(text string) bool { return text != oneLine(text) }

// nameOf makes a name that no volume has.
func (b *builder) nameOf(v *volume) string {
	text := v.id[strings.LastIndexByte(strings.TrimRight(v.id, "/"), '/')+1:]
	return free(objectName(text, "volume"), b.blocked)
}

// objectName makes a name of a text that is one.
func objectName(text, otherwise string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, text)
	name = strings.TrimLeft(name, "._-")
	if name = name[:min(len(name), 56)]; name == "" || name == conf.None {
		return otherwise
	}
	return name
}

// free makes a name one that is not taken yet.
func free(name string, taken map[string]bool) string {
	for n, base := 2, name; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}

// target makes a target of one.
func (b *builder) target(n int, t *target) {
	name := strings.ToLower(t.name)
	if _, again := b.places["targets."+name]; again {
		b.from.note(t.place, "a second target of the same name was not carried over", "")
		return
	}
	if isOdd(name) {
		b.from.note(t.place, "a target whose name has control characters was not carried over", "")
		return
	}
	out := conf.Target{Name: name, Alias: strings.TrimSpace(oneLine(t.alias)), PortalGroups: b.groupsOf[n], Redirect: oneLine(t.redirect)}
	for _, r := range t.rules {
		access := conf.Access{AuthGroup: b.auth(r.auth)}
		access.Match.Networks = r.networks
		for _, i := range r.initiators {
			if i = strings.ToLower(i); conf.ValidPattern(i) && (b.from.globs || !strings.ContainsAny(i, "*?[\\")) {
				access.Match.Initiators = append(access.Match.Initiators, i)
			} else {
				b.from.note(r.place, "an initiator whose name is no iSCSI name was not carried over", "add it to the target's access rules by a name that is one")
			}
		}
		if len(r.initiators) > 0 && access.Match.Initiators == nil {
			continue
		}
		if access.LUNs = b.luns(r.luns); len(access.LUNs) > 0 {
			out.Access = append(out.Access, access)
		} else {
			b.from.note(r.place, "initiators that find no LUN were left out", "")
		}
	}
	if out.Access == nil {
		b.from.note(t.place, "a target in which nobody finds a LUN was not carried over", "")
		return
	}
	if len(t.portals) > 0 && len(out.PortalGroups) == 0 {
		b.from.note(t.place, "a target without a portal that could be carried over was left out: it would be reached through all that there are", "add it with portal-groups")
		return
	}
	b.places["targets."+name] = t.place
	b.to.Targets = append(b.to.Targets, out)
}

func (b *builder) luns(all []lun) (out []conf.LUN) {
	numbers, volumes := map[int64]bool{}, map[string]bool{}
	for _, l := range all {
		name, ok := b.names[l.volume]
		switch {
		case !ok:
			b.from.note(l.place, "a LUN of a disk that was not carried over was left out", "")
		case l.number < 0 || l.number > conf.MaxLUN || numbers[l.number]:
			b.from.note(l.place, fmt.Sprintf("a LUN without a number of its own from 0 to %d was left out", conf.MaxLUN), "add it by another number")
		case volumes[name]:
			b.from.note(l.place, "the disk is a LUN of the same target before; the second one was left out", "")
		default:
			numbers[l.number], volumes[name] = true, true
			out = append(out, conf.LUN{LUN: int(l.number), Volume: name, ReadOnly: l.readOnly})
		}
	}
	return out
}

// The lengths of CHAP secrets in bytes that a configuration takes.
const (
	shortestSecret = 12
	longestSecret  = 255
)

// auth is the name of a group; empty: nothing is asked for.
func (b *builder) auth(a *auth) string {
	if a == nil {
		return ""
	}
	key := fmt.Sprintf("%q", append(slices.Clone(a.users), a.mutual))
	if name, ok := b.auths[key]; ok {
		return name
	}
	taken := map[string]bool{}
	for _, g := range b.to.AuthGroups {
		taken[g.Name] = true
	}
	g := conf.AuthGroup{Name: free(objectName(a.users[0].name, "users"), taken)}
	for _, u := range a.users {
		if slices.ContainsFunc(g.CHAP, func(c conf.Credential) bool { return c.User == oneLine(u.name) }) {
			b.from.note(a.place, "a second secret of the same user was not carried over", "give it a user of its own")
			continue
		}
		g.CHAP = append(g.CHAP, b.credential(a, u))
	}
	g.Algorithms = conf.DefaultAlgorithms()
	if a.mutual.name != "" {
		c := b.credential(a, a.mutual)
		g.Mutual = &c
	}
	b.auths[key], b.places["auth-groups."+g.Name] = g.Name, a.place
	b.to.AuthGroups = append(b.to.AuthGroups, g)
	return g.Name
}

func (b *builder) credential(a *auth, u user) conf.Credential {
	c := conf.Credential{User: oneLine(u.name), Secret: conf.NewSecret(u.secret)}
	if len(u.secret) < shortestSecret || len(u.secret) > longestSecret || isOdd(u.secret) {
		b.from.note(a.place, fmt.Sprintf("a CHAP secret has %d bytes, or control characters, and was left out: RFC 7143 wants 12 or more", len(u.secret)),
			fmt.Sprintf("put one of %d to %d bytes in the place of %q, there and at the initiators", shortestSecret, longestSecret, conf.Withheld))
		c.Secret = conf.NewSecret(conf.Withheld)
	}
	return c
}
