package foreign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"lunar/conf"
)

// spdk is what a configuration defines for its targets.
type spdk struct {
	*server
	base     string // of names without a prefix
	bdevs    map[string]bool
	portals  map[string]*portals // by tag
	allowed  map[string]*item    // initiator groups by tag
	auths    map[string]*item    // by tag
	nodes    []*item
	discover string // tag of the auth group for discovery
}

// readSPDK reads what SPDK's RPC save_config writes.
func readSPDK(f File, _ Include) (*server, error) {
	root, err := parseJSON(f.Data)
	if err != nil {
		return nil, err
	}
	c := &spdk{server: &server{}, base: "iqn.2016-06.io.spdk", bdevs: map[string]bool{}, portals: map[string]*portals{}, allowed: map[string]*item{}, auths: map[string]*item{}}
	for _, sub := range root.list("subsystems") {
		name := sub.text("subsystem")
		for _, call := range sub.list("config") {
			c.call(name, call)
		}
	}
	for n, node := range c.nodes {
		c.node(n, node)
	}
	if a := c.auths[c.discover]; a != nil {
		c.discovery = c.auth(a)
	}
	c.notes = append(c.notes, root.leftovers(&spdkKnown)...)
	return c.server, nil
}

// spdkProducts are the product names of bdev modules, by the call that makes a bdev.
var spdkProducts = map[string]struct {
	product string
	kind    conf.VolumeType
}{
	"bdev_aio_create": {"AIO disk", conf.FileVolume}, "bdev_uring_create": {"URING bdev", conf.FileVolume},
	"bdev_malloc_create": {"Malloc disk", conf.RAMVolume}, "bdev_null_create": {"Null disk", conf.NullVolume},
}

// spdkSilent are calls that say nothing of targets.
func spdkSilent(method string) bool {
	for _, end := range []string{"set_options", "_wait_for_examine", "framework_set_scheduler", "log_set_level", "_enable_histogram", "_set_hotplug", "iobuf_set_options"} {
		if strings.HasSuffix(method, end) {
			return true
		}
	}
	return false
}

func (c *spdk) call(subsystem string, call *item) {
	method, p := call.text("method"), call.one("params")
	if p == nil {
		p = &item{place: call.place}
	}
	made, isBdev := spdkProducts[method]
	switch {
	case isBdev:
		c.bdev(call, p, made.product, made.kind)
	case method == "iscsi_create_portal_group":
		c.portalGroup(p)
	case method == "iscsi_create_initiator_group":
		c.allowed[p.text("tag")] = p
	case method == "iscsi_create_auth_group":
		c.auths[p.text("tag")] = p
	case method == "iscsi_create_target_node":
		c.nodes = append(c.nodes, p)
	case method == "iscsi_set_options":
		c.options(p)
	case spdkSilent(method) || subsystem != "iscsi" && subsystem != "bdev" || method == "":
		markAll(call)
	default:
		c.note(call.place, "the call "+shownKey(method)+" was not carried over", "if a LUN needs it, serve the same storage as a file or block device")
		markAll(call)
	}
}

func (c *spdk) options(p *item) {
	if base := p.text("node_base"); base != "" {
		c.base = base
	}
	if n, ok := p.number("max_connections_per_session"); ok && n != 2 { // SPDK's default
		c.joined = max(c.joined, int(n))
	}
	if n, ok := p.number("error_recovery_level"); ok {
		c.recovery = max(c.recovery, int(n))
	}
	if n, ok := p.number("chap_group"); ok && n > 0 {
		c.discover = fmt.Sprint(n)
	} else if n, ok := p.number("discovery_auth_group"); ok && n > 0 {
		c.discover = fmt.Sprint(n)
	}
	markAll(p)
}

func (c *spdk) bdev(call, p *item, product string, kind conf.VolumeType) {
	name := p.text("name")
	v := &volume{id: name, place: call.place, kind: kind, path: p.text("filename"), vendor: "INTEL", product: product, revision: "0001", readOnly: p.flag("readonly", false)}
	if kind == conf.FileVolume && isDevice(v.path) {
		v.kind = conf.BlockVolume
	}
	if n, ok := p.number("block_size"); ok {
		v.block = int(n)
	}
	if blocks, ok := p.number("num_blocks"); ok {
		v.size = blocks * int64(max(v.block, 512))
	}
	if kind == conf.RAMVolume {
		c.note(call.place, "a malloc bdev begins empty", "copy its data")
	}
	c.volumes, c.bdevs[name] = append(c.volumes, v), true
}

func (c *spdk) portalGroup(p *item) {
	tag, _ := p.number("tag")
	out := &portals{tag: int(tag), home: p.place}
	for _, i := range p.list("portals") {
		addr, err := netip.ParseAddr(strings.Trim(i.text("host"), "[]"))
		port, ok := i.number("port")
		if err != nil || !ok || port < 1 || port > 65535 {
			c.note(i.place, "a portal without an address and port was not carried over", "add it to the portal-groups")
			continue
		}
		out.at = append(out.at, portal{addr: netip.AddrPortFrom(addr.WithZone(""), uint16(port))})
	}
	c.portals[p.text("tag")] = out
}

func (c *spdk) node(number int, p *item) {
	name := p.text("name")
	if !strings.HasPrefix(name, "iqn.") && !strings.HasPrefix(name, "eui.") && !strings.HasPrefix(name, "naa.") {
		name = c.base + ":" + name
	}
	out := &target{name: name, alias: p.text("alias_name"), place: p.place}
	r := &rule{place: p.place}
	c.reached(out, p.list("pg_ig_maps"))
	for _, l := range p.list("luns") {
		n, ok := l.number("lun_id")
		if !ok {
			n = -1
		}
		id := l.text("bdev_name")
		r.luns = append(r.luns, lun{place: l.place, number: n, volume: id})
		c.identify(id, number)
	}
	if !p.flag("disable_chap", false) && (p.flag("require_chap", false) || p.flag("mutual_chap", false)) {
		r.auth = c.auth(c.auths[p.text("chap_group")])
		if r.auth == nil {
			c.note(p.at("require_chap"), "CHAP is asked for and there is no user: nobody can log in; the target was not carried over", "add it with an auth-group")
			markAll(p)
			return
		}
	}
	for _, own := range out.rules {
		own.auth, own.luns = r.auth, r.luns
	}
	if depth, ok := p.number("queue_depth"); ok {
		c.depth = max(c.depth, int(depth))
	}
	for _, key := range []string{"header_digest", "data_digest"} {
		if p.flag(key, false) {
			c.note(p.at(key), key+" was asked for by the target; Lunar takes digests whenever the initiator wants them", "require them at the initiators")
		}
	}
	c.targets = append(c.targets, out)
}

// reached takes a target's portal groups, and of the first one the initiators. Portal groups
// that admit others are left out.
func (c *spdk) reached(out *target, maps []*item) {
	var order []string
	admits := map[string][]string{} // tags of initiator groups, by that of the portal group
	for _, m := range maps {
		at, who := m.text("pg_tag"), m.text("ig_tag")
		if c.portals[at] == nil || c.allowed[who] == nil {
			c.note(m.place, "a map of a portal group or initiator group that is not there was left out", "")
			continue
		}
		if admits[at] == nil {
			order = append(order, at)
		}
		admits[at] = append(admits[at], who)
	}
	for n, at := range order {
		if n > 0 && !slices.Equal(admits[at], admits[order[0]]) {
			c.note(out.place, "the portal group "+shownKey(at)+" was left out: it admits other initiators than the first one, and of each target, Lunar has the same for all portals",
				"add it to the target's portal-groups if all of the target's initiators may come by it")
			continue
		}
		out.portals = append(out.portals, c.portals[at])
	}
	var denied []string
	for n := range order[:min(len(order), 1)] {
		for _, who := range admits[order[n]] {
			if r := c.admitted(c.allowed[who], &denied); r != nil {
				out.rules = append(out.rules, r)
			}
		}
	}
}

// admitted is a rule of an initiator group; nil: it has nobody. The first name that matches
// decides, so that those denied are so in all further groups (iscsi_tgt_node_access).
func (c *spdk) admitted(g *item, denied *[]string) *rule {
	r, anyone := &rule{place: g.place}, false
	for _, i := range g.list("initiators") {
		name := strings.ToLower(i.arg(0))
		no, denies := strings.CutPrefix(name, "!")
		switch {
		case denies:
			*denied = append(*denied, no)
		case slices.Contains(*denied, "any") || slices.Contains(*denied, name):
			c.note(i.place, "a name that is left out before admits nobody, and was not carried over", "")
		case name != "any" && name != "all":
			r.initiators = append(r.initiators, name)
		case len(*denied) > 0:
			c.note(i.place, "everyone but those left out before was not carried over: nobody is admitted by it", "add the initiators that may to the access rules")
		default:
			anyone = true
		}
	}
	if anyone {
		r.initiators = nil
	}
	anywhere := false
	for _, n := range g.list("netmasks") {
		if text := n.arg(0); strings.EqualFold(text, "ANY") || text == "ALL" {
			anywhere = true
		} else if p, ok := network(text); ok {
			r.networks = append(r.networks, p)
		} else {
			c.note(n.place, "a netmask that is no network was not carried over, and nobody is admitted by it", "add it to networks")
		}
	}
	if anywhere {
		r.networks = nil
	}
	if !anyone && r.initiators == nil || !anywhere && r.networks == nil {
		c.note(g.place, "an initiator group that admits nobody was left out", "")
		return nil
	}
	return r
}

func (c *spdk) auth(g *item) *auth {
	if g == nil {
		return nil
	}
	a := &auth{place: g.place}
	for _, u := range g.list("secrets") {
		a.users = append(a.users, user{u.text("user"), u.text("secret")})
		own := user{u.text("muser"), u.text("msecret")}
		switch {
		case own.name == "" || own == a.mutual:
		case a.mutual.name != "":
			c.note(u.place, "another mutual secret was not carried over: of each auth-group, Lunar has one", "give the user an auth-group of its own")
		default:
			a.mutual = own
		}
	}
	if a.users == nil {
		return nil
	}
	return a
}

// identify follows bdev_scsi_inquiry: a disk's designators have the number of its target.
func (c *spdk) identify(id string, target int) {
	at := slices.IndexFunc(c.volumes, func(v *volume) bool { return v.id == id })
	if at < 0 || c.volumes[at].designators != nil {
		return
	}
	const iscsi, longest = 0x50, 32
	v := c.volumes[at]
	v.serial = id[:min(len(id), longest-1)] + "\x00"
	var hash uint64
	for _, b := range []byte(id) {
		hash = hash*131 + uint64(int64(int8(b)))
	}
	naa := 0x2000000347000000 | hash&0xfff000000<<24 | hash&0xffffff
	v.designators = [][]byte{
		descriptor(iscsi|binaryCode, protocolValid|naaType, be64(naa)),
		descriptor(iscsi|asciiCode, protocolValid|t10Type, slices.Concat(padded(v.vendor, 8, ' '), padded(v.product, 16, ' '), padded(id, longest, ' '))),
		unitGroup(iscsi|binaryCode, protocolValid, uint16(target)),
	}
}

var spdkKnown = knowledge{
	quiet: []string{
		"private", "uuid", "fallocate", "nowait", "physical_block_size", "optimal_io_boundary", "md_size", "dif_is_head_of_md", "dif_pi_format", "numa_id", "chap_group", "disable_chap",
		"require_chap", "mutual_chap", "preferred_write_granularity", "preferred_write_alignment", "optimal_write_size", "preferred_unmap_granularity", "preferred_unmap_alignment", "md_interleave",
	},
	usual:  map[string]string{"dif_type": "0"},
	advice: map[string]string{"dif_type": "give the volume protection: 1, 2 or 3"},
}
