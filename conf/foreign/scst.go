package foreign

import (
	"fmt"
	"hash/crc32"
	"net/netip"
	"strconv"
	"strings"

	"lunar/conf"
)

// readSCST reads scst.conf of scstadmin.
func readSCST(f File, _ Include) (*server, error) {
	tokens, err := lex(string(f.Data))
	if err != nil {
		return nil, err
	}
	root, err := blocks(tokens, func(_ *item, t token) bool { return t.mark == lineEnd })
	if err != nil {
		return nil, err
	}
	s := &server{globs: true}
	setup, _ := root.number("setup_id")
	for _, h := range root.all("HANDLER") {
		for _, d := range h.all("DEVICE") {
			scstDevice(s, h.arg(0), d, uint32(setup))
		}
	}
	for _, d := range root.all("TARGET_DRIVER") {
		if d.arg(0) != "iscsi" && d.arg(0) != "isert" {
			s.note(d.place, "targets of another driver than iscsi were not carried over", "")
			markAll(d)
			continue
		}
		s.discovery = scstAuth(s, d)
		for _, t := range d.all("TARGET") {
			scstTarget(s, t)
		}
	}
	s.notes = append(s.notes, root.leftovers(&scstKnown)...)
	return s, nil
}

func scstDevice(s *server, handler string, d *item, setup uint32) {
	v := &volume{id: d.arg(0), place: d.place, path: d.text("filename"), vendor: "SCST_FIO", product: d.arg(0), revision: "3110"}
	switch handler {
	case "vdisk_fileio":
		v.kind = conf.FileVolume
		if isDevice(v.path) {
			v.kind = conf.BlockVolume
		}
	case "vdisk_blockio":
		v.kind, v.vendor = conf.BlockVolume, "SCST_BIO"
	case "vdisk_nullio":
		v.kind = conf.NullVolume
	default:
		s.note(d.place, "a device of a handler that Lunar does not have was not carried over", "serve the device below as type: block")
		markAll(d)
		return
	}
	if mib, ok := d.number("size_mb"); ok {
		v.size = mib << 20
	}
	if size, ok := d.number("size"); ok {
		v.size = size
	}
	if v.kind == conf.NullVolume && v.size == 0 {
		v.size = 1 << 30
	}
	if n, ok := d.number("blocksize"); ok {
		v.block = int(n)
	}
	v.readOnly, v.removable, v.stable = d.flag("read_only", false), d.flag("removable", false), d.flag("write_through", false)
	if d.flag("nv_cache", false) {
		s.note(d.at("nv_cache"), "nv_cache told initiators that they need not flush", "Lunar has a volatile cache and honours flushes; write: sync spares initiators them")
	}
	scstIdentity(s, v, d, setup)
	s.volumes = append(s.volumes, v)
}

// scstIdentity follows vdev_create_node, vdisk_usn_vpd and vdisk_dev_id_vpd.
func scstIdentity(s *server, v *volume, d *item, setup uint32) {
	number := uint64(setup)<<32 | uint64(scstHash(v.id+"\x00"))
	name := fmt.Sprintf("%x-%s", number, v.id)
	name = name[:min(len(name), 25)]
	v.serial = fmt.Sprintf("%x", number)
	for key, to := range map[string]*string{"t10_vend_id": &v.vendor, "prod_id": &v.product, "prod_rev_lvl": &v.revision, "usn": &v.serial, "t10_dev_id": &name} {
		if value := d.text(key); value != "" {
			*to = value
		}
	}
	v.serial = v.serial[:min(len(v.serial), 20)]
	specific := name
	if value := d.text("vend_specific_id"); value != "" {
		specific = value
	}
	v.designators = [][]byte{descriptor(asciiCode, t10Type, append(padded(v.vendor, 8, ' '), specific...))}
	eui, naa := d.text("eui64_id"), d.text("naa_id")
	if n := len(onlyHex(strings.TrimPrefix(eui, "0x"))) / 2; n > 0 {
		v.designators = append(v.designators, descriptor(binaryCode, euiType, hexDigits(eui, n)))
	}
	if n := len(onlyHex(strings.TrimPrefix(naa, "0x"))) / 2; n > 0 {
		v.designators = append(v.designators, descriptor(binaryCode, naaType, hexDigits(naa, n)))
	}
	if eui == "" && naa == "" {
		v.designators = append(v.designators, descriptor(binaryCode, euiType, padded(name, 8, 0)))
	}
	if d.text("usn") == "" || d.text("t10_dev_id") == "" {
		s.note(d.place, "the file does not give usn or t10_dev_id; they were derived from the device's name as SCST 3.11 does", "compare sg_vpd -p sn and -p di of an initiator before and after")
	}
}

// scstHash is the kernel's crc32c(0, text, length): without the inversions of the usual
// one.
func scstHash(text string) uint32 {
	return ^crc32.Update(0xffffffff, crc32.MakeTable(crc32.Castagnoli), []byte(text))
}

func scstTarget(s *server, t *item) {
	if !t.flag("enabled", true) {
		s.note(t.at("enabled"), "a target that is disabled was not carried over", "enable it there and import again if it is to be served")
		markAll(t)
		return
	}
	out := &target{name: t.arg(0), place: t.place, alias: t.text("alias"), portals: scstPortals(s, t)}
	if to := t.one("redirect"); to != nil {
		out.redirect = to.arg(0)
	}
	who, partly := scstAuth(s, t), false
	for _, g := range t.all("GROUP") {
		r := &rule{place: g.place, auth: who, luns: scstLUNs(g)}
		r.initiators, partly = scstInitiators(s, g, partly)
		if len(r.initiators) > 0 {
			out.rules = append(out.rules, r)
		} else {
			s.note(g.place, "a group without initiators was not carried over", "")
		}
	}
	if luns := scstLUNs(t); len(luns) > 0 && partly {
		s.note(t.place, "the LUNs for everyone else were not carried over: initiators that were left out above would find them in place of their own", "add an access rule for those who may")
	} else if len(luns) > 0 {
		out.rules = append(out.rules, &rule{place: t.place, auth: who, luns: luns})
	}
	if depth, ok := t.number("QueuedCommands"); ok {
		s.depth = max(s.depth, int(depth))
	}
	s.targets = append(s.targets, out)
}

// scstInitiators are the patterns of a group. partly says that a pattern was left out, of
// this group or one before: then whom it was for is not to find the LUNs of another group,
// and further patterns with wildcards are left out as well.
func scstInitiators(s *server, g *item, before bool) (patterns []string, partly bool) {
	partly = before
	for _, i := range g.all("INITIATOR") {
		pattern, portal, byPortal := strings.Cut(i.arg(0), "#")
		switch {
		case byPortal && portal != "*":
			s.note(i.place, "an initiator that is admitted at some portals was not carried over: of each initiator, Lunar has the same at all portals", "add it to the access rules if it may come by all portals of the target")
			partly = true
		case strings.HasPrefix(pattern, "!"):
			s.note(i.place, "a pattern that leaves initiators out was not carried over, and nobody is admitted by it", "add the initiators that may to the access rules")
			partly = true
		case before && strings.ContainsAny(pattern, "*?"):
			s.note(i.place, "a pattern was not carried over: it may match initiators that were left out above", "add the initiators that may to the access rules")
		default:
			patterns = append(patterns, pattern)
		}
	}
	return patterns, partly
}

func scstLUNs(i *item) (luns []lun) {
	for _, l := range i.all("LUN") {
		number, err := strconv.ParseInt(l.arg(0), 0, 64)
		if err != nil {
			number = -1
		}
		luns = append(luns, lun{l.place, number, l.arg(1), l.flag("read_only", false)})
	}
	return luns
}

// scstPortals are the addresses that a target is allowed at; none: all.
func scstPortals(s *server, t *item) []*portals {
	p := &portals{home: t.place}
	if tag, ok := t.number("rel_tgt_id"); ok {
		p.tag = int(tag)
	}
	allowed := t.all("allowed_portal")
	for _, a := range allowed {
		if addr, err := netip.ParseAddr(a.arg(0)); err == nil && addr.Zone() == "" {
			p.at = append(p.at, portal{addr: netip.AddrPortFrom(addr, 3260)})
		} else {
			s.note(a.place, "an allowed_portal that is no address was not carried over", "add the addresses to the portal-groups")
		}
	}
	if len(allowed) == 0 {
		return nil
	}
	return []*portals{p}
}

// scstAuth is of IncomingUser and OutgoingUser; nil: there are none.
func scstAuth(s *server, i *item) *auth {
	a := &auth{place: i.place}
	// scstadmin numbers further users: IncomingUser1.
	for _, k := range i.kids {
		key := strings.TrimRight(strings.ToLower(k.key), "0123456789")
		if key != "incominguser" && key != "outgoinguser" {
			continue
		}
		k.used = true
		words := strings.Fields(strings.Join(k.args, " "))
		if len(words) < 2 {
			s.note(k.place, "a user without a secret was not carried over", "add the user to the auth-group")
			continue
		}
		if u := (user{words[0], words[1]}); key == "incominguser" {
			a.users = append(a.users, u)
		} else {
			a.mutual = u
		}
	}
	if a.users == nil {
		return nil
	}
	return a
}

var scstKnown = knowledge{
	quiet: []string{
		"setup_id", "max_tasklet_cmd", "threads_num", "threads_pool_type", "num_threads", "cpu_mask", "io_grouping_type", "maxrecvdatasegmentlength", "maxxmitdatasegmentlength",
		"maxburstlength", "firstburstlength", "initialr2t", "immediatedata", "maxoutstandingr2t", "defaulttime2wait", "defaulttime2retain", "rsptimeout", "nopininterval", "nopintimeout",
		"maxsessions", "comment", "o_direct", "numa_node_id", "rotational", "thin_provisioned", "gen_tp_soft_threshold_reached_ua", "async", "poll_us", "opt_trans_len",
		"link_local", "internal_portal", "rel_tgt_id", "enabled", "cluster_mode", "expl_alua", "forwarding", "per_portal_acl", "black_hole", "aen_disabled", "lun", "read_only",
		"usn", "t10_dev_id", "prod_id", "prod_rev_lvl", "t10_vend_id", "vend_specific_id", "active", "bind_alua_state",
	},
	usual: map[string]string{"headerdigest": "None", "datadigest": "None", "tst": "1", "dif_mode": "0", "cookie": "", "addr_method": "PERIPHERAL"},
	advice: map[string]string{
		"headerdigest": "require digests at the initiators", "datadigest": "require digests at the initiators",
		"device_group": "set access states with portal-groups.NAME.alua", "dif_mode": "give the volume protection: 1, 2 or 3", "isnsserver": "Lunar registers with no iSNS server: give initiators the portals",
		"scsi_device_name": "initiators do not see it any more",
	},
}
