package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
)

// accepted has conf judge what was built. What it does not accept is left out, with a
// Note: first the value of a key that a volume can do without, then the object.
func (b *builder) accepted() ([]byte, error) {
	for {
		if len(b.to.Volumes) == 0 && len(b.to.Targets) == 0 {
			return nil, nil
		}
		text, err := conf.PrintFile(b.to)
		if err != nil {
			return nil, err
		}
		_, _, err = conf.ParseDraft("import", text)
		var problems conf.Errors
		if err == nil {
			return text, nil
		}
		if !errors.As(err, &problems) {
			return nil, err
		}
		before := b.count()
		for _, p := range problems {
			b.leaveOut(p)
		}
		if b.count() == before {
			return nil, fmt.Errorf("found a configuration that Lunar does not accept: %w", err)
		}
	}
}

// count becomes less whenever something is left out.
func (b *builder) count() (n int) {
	n = len(b.to.PortalGroups)
	for i := range b.to.Volumes {
		v := &b.to.Volumes[i]
		for _, text := range []string{v.Serial, v.Vendor, v.Product, v.Revision} {
			n += min(len(text), 1)
		}
		n += 1 + len(v.Designators)
	}
	for i := range b.to.Targets {
		t := &b.to.Targets[i]
		n += 1 + len(t.Access) + len(t.PortalGroups) + min(len(t.Alias), 1) + min(len(t.Redirect), 1)
	}
	for i := range b.to.AuthGroups {
		for _, c := range b.to.AuthGroups[i].CHAP {
			if n++; c.Secret.Reveal() != conf.Withheld {
				n++
			}
		}
		if b.to.AuthGroups[i].Mutual != nil {
			n++
		}
		n++
	}
	return n
}

// leaveOut leaves out what a problem is about.
func (b *builder) leaveOut(p conf.Problem) {
	section, rest, _ := strings.Cut(p.Key, ".")
	switch section {
	case "volumes":
		if i := named(rest, b.to.Volumes, func(v conf.Volume) string { return v.Name }); i >= 0 {
			b.leaveOutVolume(i, keyIn(rest, b.to.Volumes[i].Name), p)
		}
	case "targets":
		if i := named(rest, b.to.Targets, func(t conf.Target) string { return t.Name }); i >= 0 {
			b.leaveOutTarget(i, keyIn(rest, b.to.Targets[i].Name), p)
		} else if i := slices.IndexFunc(b.to.Targets, func(t conf.Target) bool { return !conf.ValidName(t.Name) }); i >= 0 {
			b.leaveOutTarget(i, "", p) // one whose name is not told
		}
	case "auth-groups":
		if i := named(rest, b.to.AuthGroups, func(g conf.AuthGroup) string { return g.Name }); i >= 0 {
			b.leaveOutAuth(i, p)
		}
	case "portal-groups":
		if i := named(rest, b.to.PortalGroups, func(g conf.PortalGroup) string { return g.Name }); i >= 0 {
			b.tell(p, "", "portals were not carried over")
			name := b.to.PortalGroups[i].Name
			b.to.PortalGroups = slices.Delete(b.to.PortalGroups, i, i+1)
			for j := range b.to.Targets {
				t := &b.to.Targets[j]
				had := len(t.PortalGroups)
				t.PortalGroups = slices.DeleteFunc(t.PortalGroups, func(g string) bool { return g == name })
				if had > 0 && len(t.PortalGroups) == 0 {
					t.Access = nil // it would be reached through all that there are
				}
			}
			b.eachRule(func(*conf.Access) bool { return true })
		}
	case "discovery":
		b.tell(p, "", "who may ask for the list of targets was not carried over")
		b.to.Discovery.AuthGroup = ""
	}
}

// named is the object that a path begins with: by the longest name, or by its number
// where conf does not show names; -1: there is none.
func named[T any](path string, all []T, name func(T) string) int {
	best, n := -1, 0
	if _, err := fmt.Sscanf(path, "(%d)", &n); err == nil && n >= 1 && n <= len(all) {
		return n - 1
	}
	for i, one := range all {
		n := name(one)
		rest, ok := strings.CutPrefix(path, n)
		if ok && (rest == "" || strings.ContainsAny(rest[:1], ".[")) && (best < 0 || len(n) > len(name(all[best]))) {
			best = i
		}
	}
	return best
}

// keyIn is what a path has behind its object.
func keyIn(path, name string) string {
	if rest, ok := strings.CutPrefix(path, name); ok {
		return rest
	}
	return path[strings.IndexByte(path, ')')+1:]
}

// tell makes a Note of what was not accepted. A Problem quotes no secret.
func (b *builder) tell(p conf.Problem, key, what string) {
	b.from.note(b.places[key], what+": found "+p.Found, "Lunar expects "+p.Expected)
}

func (b *builder) leaveOutVolume(i int, key string, p conf.Problem) {
	v := &b.to.Volumes[i]
	place := "volumes." + v.Name
	for prefix, text := range map[string]*string{".serial": &v.Serial, ".vendor": &v.Vendor, ".product": &v.Product, ".revision": &v.Revision} {
		if strings.HasPrefix(key, prefix) && *text != "" {
			b.tell(p, place, "initiators see another "+prefix[1:])
			*text = ""
			return
		}
	}
	if strings.HasPrefix(key, ".designators") && v.Designators != nil {
		b.tell(p, place, "initiators see other designators (VPD page 83h)")
		v.Designators = nil
		return
	}
	b.tell(p, place, "a disk was not carried over")
	name := v.Name
	b.to.Volumes = slices.Delete(b.to.Volumes, i, i+1)
	b.eachRule(func(r *conf.Access) bool {
		r.LUNs = slices.DeleteFunc(slices.Clone(r.LUNs), func(l conf.LUN) bool { return l.Volume == name })
		return len(r.LUNs) > 0
	})
}

func (b *builder) leaveOutTarget(i int, key string, p conf.Problem) {
	t := &b.to.Targets[i]
	place := "targets." + t.Name
	switch {
	case strings.HasPrefix(key, ".alias") && t.Alias != "":
		b.tell(p, place, "the alias was not carried over")
		t.Alias = ""
	case strings.HasPrefix(key, ".redirect") && t.Redirect != "":
		b.tell(p, place, "where logins are sent was not carried over")
		t.Redirect = ""
	default:
		b.tell(p, place, "a target was not carried over")
		b.to.Targets = slices.Delete(b.to.Targets, i, i+1)
	}
}

// leaveOutAuth leaves out the secrets of a group, or the group and who needs it.
func (b *builder) leaveOutAuth(i int, p conf.Problem) {
	g := &b.to.AuthGroups[i]
	place := "auth-groups." + g.Name
	told := false
	for j := range g.CHAP {
		if g.CHAP[j].Secret.Reveal() != conf.Withheld && !strings.HasSuffix(p.Key, ".user") {
			g.CHAP[j].Secret, told = conf.NewSecret(conf.Withheld), true
		}
	}
	if g.Mutual != nil {
		g.Mutual, told = nil, true
	}
	if told {
		b.tell(p, place, "the secrets of users were not carried over")
		return
	}
	b.tell(p, place, "users, and what they alone had, were not carried over")
	name := g.Name
	b.to.AuthGroups = slices.Delete(b.to.AuthGroups, i, i+1)
	if b.to.Discovery.AuthGroup == name {
		b.to.Discovery.AuthGroup = ""
	}
	b.eachRule(func(r *conf.Access) bool { return r.AuthGroup != name })
}

// eachRule keeps the rules that keep says, and the targets that have some.
func (b *builder) eachRule(keep func(*conf.Access) bool) {
	for i := range b.to.Targets {
		t := &b.to.Targets[i]
		kept := t.Access[:0:0]
		for j := range t.Access {
			if r := t.Access[j]; keep(&r) {
				kept = append(kept, r)
			}
		}
		t.Access = kept
	}
	b.to.Targets = slices.DeleteFunc(b.to.Targets, func(t conf.Target) bool { return len(t.Access) == 0 })
}
