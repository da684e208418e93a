package foreign

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"lunar/conf"
)

// ctldWords are the words that begin a setting of ctl.conf(5), wherever they stand
// without quotes: its grammar knows no ends of lines.
var ctldWords = []string{
	"alias", "auth-group", "auth-type", "backend", "blocksize", "chap", "chap-mutual", "ctl-lun", "debug", "device-id", "device-type", "discovery-auth-group",
	"discovery-filter", "dscp", "foreign", "host-address", "host-nqn", "initiator-name", "initiator-portal", "listen", "listen-iser", "lun", "maxproc", "offload",
	"option", "path", "pcp", "pidfile", "isns-server", "isns-period", "isns-timeout", "port", "portal-group", "redirect", "serial", "size", "tag", "target", "timeout",
}

// ctld is what a file defines for its targets.
type ctld struct {
	*server
	groups  map[string]*item
	portals map[string]*portals
	routes  map[string]string // where portal groups redirect to
	luns    map[string]*item
	volumes map[string]string // ids of the volumes of named LUNs
	count   int               // LUNs so far, as CTL numbers them
}

// readCTLD reads ctl.conf of FreeBSD's ctld.
func readCTLD(f File, _ Include) (*server, error) {
	tokens, err := lex(string(f.Data))
	if err != nil {
		return nil, err
	}
	root, err := blocks(tokens, func(_ *item, t token) bool { return t.mark == 0 && t.bare && slices.Contains(ctldWords, t.text) })
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"auth-group", "portal-group", "lun", "target"} {
		if i := root.one(key); i != nil && (i.arg(0) == "" || i.arg(0) == "=") {
			return nil, fmt.Errorf("%s: found the UCL form that ctld -u reads, expected the other form of ctl.conf(5)", i.place)
		}
	}
	c := &ctld{&server{}, map[string]*item{}, map[string]*portals{}, map[string]string{}, map[string]*item{}, map[string]string{}, 0}
	for _, g := range root.all("auth-group") {
		c.groups[g.arg(0)] = g
	}
	for _, l := range root.all("lun") {
		c.luns[l.arg(0)] = l
	}
	for _, p := range root.all("portal-group") {
		c.portalGroup(p)
	}
	for _, t := range root.all("target") {
		c.target(t)
	}
	c.notes = append(c.notes, root.leftovers(&ctldKnown)...)
	return c.server, nil
}

func (c *ctld) portalGroup(p *item) {
	out := &portals{home: p.place}
	if tag, ok := p.number("tag"); ok {
		out.tag = int(tag)
	}
	for key, rdma := range map[string]bool{"listen": false, "listen-iser": true} {
		for _, l := range p.all(key) {
			if addr, ok := ctldAddress(l.arg(0)); ok {
				out.at = append(out.at, portal{addr, rdma})
			} else {
				c.note(l.place, "a portal that is not given by its address was not carried over", "add its address to the portal-groups")
			}
		}
	}
	c.portals[p.arg(0)], c.routes[p.arg(0)] = out, p.text("redirect")
	switch name := p.text("discovery-auth-group"); name {
	case "", "default", "no-authentication":
	default:
		if c.discovery != nil {
			c.note(p.at("discovery-auth-group"), "another portal group has a discovery-auth-group, too; Lunar has one for all", "look at discovery.auth")
		}
		c.discovery = c.auth(c.groups[name])
	}
}

// ctldAddress reads an address with or without a port.
func ctldAddress(text string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, at.Port() != 0 && at.Addr().Zone() == ""
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return netip.AddrPortFrom(addr, 3260), err == nil && addr.Zone() == ""
}

func (c *ctld) target(t *item) {
	out := &target{name: t.arg(0), place: t.place, alias: t.text("alias"), redirect: t.text("redirect")}
	if !strings.HasPrefix(strings.ToLower(out.name), "iqn.") && !strings.HasPrefix(out.name, "eui.") && !strings.HasPrefix(out.name, "naa.") {
		c.note(t.place, "a target without an iSCSI name was not carried over", "")
		markAll(t)
		return
	}
	r := &rule{place: t.place}
	who := t
	name, one := ctldGroup(t)
	if !one {
		c.note(t.place, "a target whose portal groups have different auth-groups was not carried over: of each target, Lunar has the same for all portals", "add it with an auth-group")
		markAll(t)
		return
	}
	if name != "" {
		who = c.groups[name]
		if who == nil && name != "no-authentication" {
			c.note(t.place, "a target whose auth-group denies everyone, or is not there, was not carried over", "add it with an auth-group")
			markAll(t)
			return
		}
	} else if t.one("chap") == nil && t.one("chap-mutual") == nil && t.one("initiator-name") == nil && t.one("initiator-portal") == nil && t.text("auth-type") != "none" {
		c.note(t.place, "a target without authentication settings denies everyone, and was not carried over", "add it with an auth-group, or none")
		markAll(t)
		return
	}
	if who != nil {
		if kind := who.text("auth-type"); kind == "deny" {
			c.note(t.place, "a target that denies everyone was not carried over", "")
			markAll(t)
			return
		}
		if r.auth = c.auth(who); r.auth == nil && who.text("auth-type") != "none" { // ctld: "auth_type not set, denying access"
			c.note(t.place, "a target whose settings have neither a CHAP user nor auth-type none denies everyone, and was not carried over", "add it with an auth-group")
			markAll(t)
			return
		}
		c.match(who, r)
	}
	for _, p := range t.all("portal-group") {
		if found := c.portals[p.arg(0)]; found != nil {
			out.portals = append(out.portals, found)
			if route := c.routes[p.arg(0)]; route != "" {
				out.redirect = route
			}
		}
	}
	for _, l := range t.all("lun") {
		number, err := strconv.ParseInt(l.arg(0), 10, 64)
		if err != nil {
			number = -1
		}
		r.luns = append(r.luns, lun{place: l.place, number: number, volume: c.lun(out.name, l)})
	}
	out.rules = []*rule{r}
	c.server.targets = append(c.server.targets, out)
}

// ctldGroup is the auth-group that counts at a target's portal groups, each of which may
// have one instead of the target's; empty: the target has settings of its own. one is false
// if they differ.
func ctldGroup(t *item) (name string, one bool) {
	name = t.text("auth-group")
	for i, p := range t.all("portal-group") {
		of := cmp.Or(p.arg(1), t.text("auth-group"))
		if i > 0 && of != name {
			return "", false
		}
		name = of
	}
	return name, true
}

// match takes the names and addresses that a group or target is for.
func (c *ctld) match(who *item, r *rule) {
	for _, n := range who.all("initiator-name") {
		r.initiators = append(r.initiators, n.arg(0))
	}
	for _, n := range who.all("initiator-portal") {
		if p, ok := network(n.arg(0)); ok {
			r.networks = append(r.networks, p)
		} else {
			c.note(n.place, "an initiator-portal that is no address was not carried over, and nobody is admitted by it", "add it to networks")
			r.networks = append(r.networks, netip.PrefixFrom(netip.IPv6Unspecified(), 128))
		}
	}
}

// auth is whom a group or target wants; nil: nobody in particular.
func (c *ctld) auth(who *item) *auth {
	if who == nil {
		return nil
	}
	a := &auth{place: who.place}
	for _, u := range who.all("chap") {
		a.users = append(a.users, user{u.arg(0), u.arg(1)})
	}
	for _, u := range who.all("chap-mutual") {
		a.users = append(a.users, user{u.arg(0), u.arg(1)})
		own := user{u.arg(2), u.arg(3)}
		if a.mutual.name != "" && a.mutual != own {
			c.note(u.place, "another mutual secret was not carried over: of each auth-group, Lunar has one", "give the user an auth-group of its own")
			continue
		}
		a.mutual = own
	}
	if a.users == nil {
		return nil
	}
	return a
}

// lun is the id of a LUN's volume: one of its own, or one that has a name.
func (c *ctld) lun(target string, l *item) string {
	name := l.arg(1)
	if name == "" {
		return c.volume(target+"-lun"+l.arg(0), l)
	}
	if id, ok := c.volumes[name]; ok {
		return id
	}
	if of := c.luns[name]; of != nil {
		c.volumes[name] = c.volume(name, of)
	}
	return c.volumes[name]
}

// volume makes one, whose identity follows ctl_add_lun, ctl_inquiry_evpd_serial and the
// defaults of the backends.
func (c *ctld) volume(id string, l *item) string {
	number := c.count
	c.count++
	if n, ok := l.number("ctl-lun"); ok {
		number = int(n)
	}
	v := &volume{id: id, place: l.place, kind: conf.FileVolume, path: l.text("path"), vendor: "FREEBSD", product: "CTLDISK", revision: "0001"}
	switch {
	case l.text("backend") == "ramdisk":
		v.kind, v.path = conf.RAMVolume, ""
		c.note(l.place, "a ramdisk begins empty", "")
	case isDevice(v.path):
		v.kind = conf.BlockVolume
		c.note(l.at("path"), "the path of the device is one of FreeBSD", "set path to the device on this machine")
	}
	if size, ok := ctldSize(l.text("size")); ok {
		v.size = size
	}
	if n, ok := l.number("blocksize"); ok {
		v.block = int(n)
	}
	options := c.options(l, v)
	serial, device := l.text("serial"), l.text("device-id")
	if serial == "" || device == "" {
		c.note(l.place, "the file does not give serial and device-id; they were derived from the order of LUNs, as CTL does when ctld starts", "compare sg_vpd -p sn and -p di of an initiator before and after")
	}
	if serial == "" {
		serial = fmt.Sprintf("MYSERIAL%04X", number)
	}
	if device == "" {
		device = fmt.Sprintf("MYDEVID%04X", number)
	}
	v.serial = string(padded(serial, 16, 0))
	v.designators = ctldDesignators(v.vendor, device, options)
	c.server.volumes = append(c.server.volumes, v)
	return id
}

// options takes those that are about the disk; the others are returned.
func (c *ctld) options(l *item, v *volume) map[string]string {
	out := map[string]string{}
	for _, o := range l.all("option") {
		switch value := o.arg(1); o.arg(0) {
		case "vendor":
			v.vendor = value
		case "product":
			v.product = value
		case "revision":
			v.revision = value
		case "readonly":
			v.readOnly = isOn(value)
		case "removable":
			v.removable = isOn(value)
		case "writecache":
			v.stable = value == "off"
		case "naa", "eui", "uuid", "scsiname":
			out[o.arg(0)] = value
		case "pblocksize", "pblockoffset", "ublocksize", "ublockoffset", "rpm", "formfactor", "provisioning_type", "unmap", "serseq", "reordering", "insecure_tpc",
			"avail-threshold", "used-threshold", "pool-avail-threshold", "pool-used-threshold", "num_threads", "ha_role", "readcache", "dpo", "cfiscsi_target":
		default:
			c.note(o.place, "option "+shownKey(o.arg(0))+" was not carried over", "")
		}
	}
	return out
}

// ctldDesignators are in CTL's order.
func ctldDesignators(vendor, device string, options map[string]string) [][]byte {
	const shortest, longest = 16, 64
	device = device[:min(len(device), longest)]
	id := append(padded(vendor, 8, ' '), padded(device, max(shortest, len(device)), 0)...)
	out := [][]byte{descriptor(asciiCode, protocolValid|t10Type, id)}
	if name := options["scsiname"]; name != "" {
		out = append(out, descriptor(utf8Code, protocolValid|nameType, padded(name, (len(name)+4)&^3, 0)))
	}
	if eui := options["eui"]; eui != "" {
		out = append(out, descriptor(binaryCode, protocolValid|euiType, hexDigits(eui, ctldLength(eui, 8, 12, 16))))
	}
	if naa := options["naa"]; naa != "" {
		out = append(out, descriptor(binaryCode, protocolValid|naaType, hexDigits(naa, ctldLength(naa, 8, 16))))
	}
	if uuid := options["uuid"]; uuid != "" {
		out = append(out, descriptor(binaryCode, protocolValid|uuidType, append([]byte{0x10, 0}, hexDigits(uuid, 16)...)))
	}
	return out
}

// ctldLength is the least length that has room for all digits, or the last one.
func ctldLength(digits string, lengths ...int) int {
	n := (len(onlyHex(strings.TrimPrefix(strings.ToLower(digits), "0x"))) + 1) / 2
	for _, l := range lengths {
		if n <= l {
			return l
		}
	}
	return lengths[len(lengths)-1]
}

// ctldSize reads a number with a unit, as expand_number(3) does.
func ctldSize(text string) (int64, bool) {
	text = strings.TrimSuffix(strings.ToLower(text), "b")
	shift := 0
	if n := len(text); n > 0 {
		if at := strings.IndexByte("kmgtpe", text[n-1]); at >= 0 {
			shift, text = 10*(at+1), text[:n-1]
		}
	}
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil || v < 0 || v > 1<<62>>shift {
		return 0, false
	}
	return v << shift, true
}

var ctldKnown = knowledge{
	quiet: []string{"debug", "maxproc", "pidfile", "timeout", "auth-type", "backend", "device-type", "discovery-filter", "dscp", "pcp", "option", "foreign"},
	advice: map[string]string{
		"isns-server": "Lunar registers with no iSNS server: give initiators the portals", "offload": "", "port": "iSCSI alone is carried over",
	},
}
