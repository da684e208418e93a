package conf

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// inherit marks the auth-group of an Access rule that has none of its own,
// until normalize fills in the target's. No name can be equal to it.
const inherit = "\x00"

func (d *decoder) targets(n node, c *Config) {
	var t Target
	var whole Access
	keys := fields{ // as for volumes
		"alias":         printable(&t.Alias, maxUser),
		"portal-groups": each(&t.PortalGroups, reference("a portal-group")),
		"auth-group":    group(&whole.AuthGroup),
		"luns":          luns(&whole.LUNs),
		"access":        each(&t.Access, access),
		"redirect":      redirect(&t.Redirect),
		"moved":         redirect(&t.Moved),
	}
	d.named(n, naming{ValidName, wantName, aMapping}, func(name string, n node) {
		t, whole = Target{Name: name}, Access{}
		ok := d.mapping(n, keys)
		if t.Redirect != "" && t.Moved != "" {
			d.fail(n.path+".moved", "moved and redirect", "one of them")
		}
		t.inherit(whole)
		d.shared[name] = whole
		if ok && !d.has(n, "luns") && !d.has(n, "access") {
			d.fail(n.path, "neither luns nor access", "luns: a list of {lun, volume}")
		}
		c.Targets = append(c.Targets, t)
	})
}

// redirect accepts where an initiator is sent, which has no portal group tag
// (RFC 7143 section 13.8). Without a port it is that of iSCSI.
func redirect(to *string) setter {
	return parsed(to, WantRedirect, ParseRedirect)
}

// WantRedirect says what ParseRedirect takes.
const WantRedirect = "an address or a DNS name, with or without a port, such as \"192.0.2.1:3260\" or \"[2001:db8::1]:3260\""

// ParseRedirect reads where an initiator is to be sent, as host:port.
func ParseRedirect(s string) (string, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, iSCSIPort).String(), a.Zone() == "" && !a.IsUnspecified()
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.String(), a.Addr().Zone() == "" && !a.Addr().IsUnspecified() && a.Port() != 0
	}
	host, port, found := strings.Cut(s, ":")
	if !found {
		port = strconv.Itoa(iSCSIPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return fmt.Sprintf("%s:%d", host, number), err == nil && number > 0 && dnsName.MatchString(host)
}

// iSCSIPort is registered for iSCSI.
const iSCSIPort = 3260

var dnsName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// inherit gives every rule what it does not say itself. A target without
// rules has one for everyone.
func (t *Target) inherit(whole Access) {
	if len(t.Access) == 0 {
		t.Access = []Access{whole}
		return
	}
	for i := range t.Access {
		if a := &t.Access[i]; a.AuthGroup == inherit {
			a.AuthGroup = whole.AuthGroup
		}
		if a := &t.Access[i]; a.LUNs == nil {
			a.LUNs = whole.LUNs
		}
	}
}

// access reads one rule.
func access(a *Access) setter {
	return func(d *decoder, n node) {
		a.AuthGroup = inherit
		d.mapping(n, fields{
			"initiators": each(&a.Match.Initiators, pattern),
			"networks":   each(&a.Match.Networks, network),
			"auth-group": group(&a.AuthGroup),
			"luns":       luns(&a.LUNs),
		})
	}
}

// luns reads a list of {lun, volume, read-only}, or its short form, a mapping
// from LUN to volume.
func luns(to *[]LUN) setter {
	return func(d *decoder, n node) {
		if _, short := n.ast.(ast.MapNode); !short {
			each(to, mapped)(d, n)
			*to = append([]LUN{}, *to...) // not nil: the key is there
			return
		}
		entries, _ := d.entries(n, func(string) string { return unnamed })
		for _, e := range entries {
			l := LUN{LUN: noLUN}
			var ok bool
			if l.LUN, ok = lunNumber(n.step(e)); !ok {
				d.failAt(e.key, n.path, "a key that is none", wantLUN)
				e.path = below(n.path, unnamed)
				d.at[e.path] = e.place()
			}
			reference("a volume")(&l.Volume)(d, e)
			d.at[fmt.Sprintf("%s[%d].lun", n.path, len(*to))] = e.key
			d.at[fmt.Sprintf("%s[%d].volume", n.path, len(*to))] = e.place()
			*to = append(*to, l)
		}
	}
}

var wantLUN = fmt.Sprintf("a LUN: a whole number from 0 to %d", MaxLUN)

// lunNumber is a LUN, or noLUN and false.
func lunNumber(s string) (int, bool) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v > MaxLUN || strconv.Itoa(v) != s {
		return noLUN, false
	}
	return v, true
}

// mapped reads one {lun, volume, read-only}.
func mapped(l *LUN) setter {
	return func(d *decoder, n node) {
		l.LUN = noLUN
		ok := d.mapping(n, fields{
			"lun":       number(&l.LUN, 0, MaxLUN),
			"volume":    reference("a volume")(&l.Volume),
			"read-only": boolean(&l.ReadOnly),
		})
		if !ok {
			return
		}
		d.require(n, "lun", fmt.Sprintf("a whole number from 0 to %d", MaxLUN))
		d.require(n, "volume", "the name of a volume")
	}
}

// reference accepts the name of another object, which validate looks up.
func reference(what string) func(*string) setter {
	return func(to *string) setter { return text(to, "the name of "+what, objectName.MatchString) }
}
