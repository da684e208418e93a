package foreign

import (
	"fmt"
	"net/netip"
	"strings"

	"lunar/conf"
)

// readLIO reads saveconfig.json of targetcli (rtslib-fb).
func readLIO(f File, _ Include) (*server, error) {
	root, err := parseJSON(f.Data)
	if err != nil {
		return nil, err
	}
	s := &server{}
	for _, o := range root.list("storage_objects") {
		lioStorage(s, o)
	}
	for _, t := range root.list("targets") {
		if fabric := t.text("fabric"); fabric != "" && fabric != "iscsi" {
			s.note(t.place, "a target of another fabric than iSCSI was not carried over", "")
			markAll(t)
			continue
		}
		lioTarget(s, t)
	}
	for _, m := range root.list("fabric_modules") {
		if m.text("name") == "iscsi" {
			s.discovery = lioAuth(m, "discovery_")
			m.one("discovery_enable_auth")
		}
	}
	s.notes = append(s.notes, root.leftovers(&lioKnown)...)
	return s, nil
}

// lioKinds are the plug-ins of backstores.
var lioKinds = map[string]conf.VolumeType{"fileio": conf.FileVolume, "block": conf.BlockVolume, "ramdisk": conf.RAMVolume}

// lioProducts are the product identifications that the kernel has for them
// (inquiry_prod), unless emulate_model_alias takes the name.
var lioProducts = map[conf.VolumeType]string{conf.FileVolume: "FILEIO", conf.BlockVolume: "IBLOCK", conf.RAMVolume: "RAMDISK-MCP"}

func lioStorage(s *server, o *item) {
	plugin, name := o.text("plugin"), o.text("name")
	kind, ok := lioKinds[plugin]
	if !ok {
		s.note(o.place, "a backstore of a kind that Lunar does not have was not carried over", "for pscsi and user-backed stores, serve the device below as type: block")
		markAll(o)
		return
	}
	if kind == conf.RAMVolume {
		s.note(o.place, "a RAM disk begins empty", "copy its data")
		if o.flag("nullio", false) {
			kind = conf.NullVolume
		}
	}
	attributes := o.one("attributes")
	v := &volume{
		id: "/backstores/" + plugin + "/" + name, place: o.place, kind: kind, path: o.text("dev"),
		readOnly: o.flag("readonly", false), vendor: "LIO-ORG", product: lioProducts[lioKinds[plugin]], revision: "4.0",
	}
	if size, ok := o.number("size"); ok {
		v.size = size
	}
	if block, ok := attributes.number("block_size"); ok {
		v.block = int(block)
	}
	if attributes.flag("emulate_model_alias", true) {
		v.product = name[:min(len(name), 15)] // strscpy of 16 bytes
	}
	through := !o.flag("write_back", true) && !attributes.flag("emulate_write_cache", false)
	v.stable = kind == conf.FileVolume && through
	lioIdentity(v, o.text("wwn"))
	s.volumes = append(s.volumes, v)
}

// lioIdentity follows spc_emulate_evpd_80 and spc_emulate_evpd_83.
func lioIdentity(v *volume, serial string) {
	if serial == "" {
		return // the kernel sends no serial number then, and no NAA
	}
	v.serial = serial + "\x00"
	digits := onlyHex(serial)
	naa := hexDigits("6001405"+digits[:min(len(digits), 25)], 16)
	t10 := append(padded(v.vendor, 8, ' '), v.product+":"+serial+"\x00"...)
	v.designators = [][]byte{
		descriptor(binaryCode, naaType, naa),
		descriptor(asciiCode, t10Type, t10),
		unitGroup(binaryCode, 0, 0), // default_lu_gp
	}
}

func lioTarget(s *server, t *item) {
	name := t.text("wwn")
	out := &target{name: name, place: t.place}
	for _, g := range t.list("tpgs") {
		switch {
		case !g.flag("enable", true):
			s.note(g.place, "a target portal group that is disabled was not carried over", "enable it there and import again if it is to be served")
			markAll(g)
		case out.portals != nil:
			s.note(g.place, "a further target portal group was not carried over, with its portals: of each target, Lunar has the same LUNs, initiators and secrets for all portals", "give its initiators access rules of the target, and add its portals if all initiators of the target may come by them")
			markAll(g)
		default:
			lioGroup(s, out, g)
		}
	}
	s.targets = append(s.targets, out)
}

// markAll marks an item whose Note has been made.
func markAll(i *item) {
	for _, k := range i.kids {
		k.used = true
		markAll(k)
	}
}

func lioPortals(s *server, g *item) *portals {
	tag, _ := g.number("tag")
	p := &portals{tag: int(tag), home: g.place}
	for _, i := range g.list("portals") {
		addr, err := netip.ParseAddr(strings.Trim(i.text("ip_address"), "[]"))
		port, ok := i.number("port")
		if err != nil || !ok || port < 1 || port > 65535 {
			s.note(i.place, "a portal without an address and port was not carried over", "add it to the portal-groups")
			continue
		}
		at := netip.AddrPortFrom(addr.WithZone(""), uint16(port))
		p.at = append(p.at, portal{at, i.flag("iser", false)})
		if addr == netip.IPv6Unspecified() && !i.flag("iser", false) { // the kernel's socket takes both
			p.at = append(p.at, portal{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), false})
		}
	}
	return p
}

func lioGroup(s *server, out *target, g *item) {
	attributes, parameters := g.one("attributes"), g.one("parameters")
	out.portals = append(out.portals, lioPortals(s, g))
	if alias := parameters.text("TargetAlias"); alias != "" && alias != "LIO Target" {
		out.alias = alias
	}
	lioParameters(s, attributes, parameters)
	luns, shared := map[string]string{}, []lun{}
	for _, l := range g.list("luns") {
		number, _ := l.number("index")
		luns[fmt.Sprint(number)] = l.text("storage_object")
		shared = append(shared, lun{place: l.place, number: number, volume: l.text("storage_object")})
	}
	asks := attributes.flag("authentication", false)
	group, without := lioAuth(g, "chap_"), false
	for _, a := range g.list("node_acls") {
		r := &rule{place: a.place, initiators: []string{a.text("node_wwn")}}
		for _, m := range a.list("mapped_luns") {
			number, _ := m.number("index")
			r.luns = append(r.luns, lun{m.place, number, luns[m.text("tpg_lun")], m.flag("write_protect", false)})
		}
		if own := lioAuth(a, "chap_"); asks && own != nil {
			r.auth = own
		} else if asks {
			s.note(a.place, "CHAP is asked for and there is no user: nobody can log in", "give the auth-group a user")
			without = true
			continue
		}
		if depth, ok := a.one("attributes").number("cmdsn_depth"); ok {
			s.depth = max(s.depth, int(depth))
		}
		out.rules = append(out.rules, r)
	}
	if all := attributes.flag("generate_node_acls", false); all && asks && group == nil {
		s.note(g.place, "CHAP is asked for and there is no user: initiators without an entry of their own cannot log in, and were not carried over", "give the target an auth-group with a user")
	} else if all && without {
		s.note(g.place, "the LUNs of initiators without an entry of their own were not carried over: those that cannot log in would find them", "add an access rule for those who may")
	} else if all {
		r := &rule{place: g.place, luns: shared}
		for i := range r.luns {
			r.luns[i].readOnly = attributes.flag("demo_mode_write_protect", true)
		}
		if asks {
			r.auth = group
		}
		out.rules = append(out.rules, r)
	} else if len(out.rules) == 0 {
		s.note(g.place, "it has no initiators, and nobody may log in", "")
	}
}

// lioParameters takes what sessions have agreed on.
func lioParameters(s *server, attributes, parameters *item) {
	if depth, ok := attributes.number("default_cmdsn_depth"); ok {
		s.depth = max(s.depth, int(depth))
	}
	if level, ok := parameters.number("ErrorRecoveryLevel"); ok {
		s.recovery = max(s.recovery, int(level))
	}
	if n, ok := parameters.number("MaxConnections"); ok {
		s.joined = max(s.joined, int(n))
	}
	for _, key := range []string{"HeaderDigest", "DataDigest"} {
		if value := parameters.text(key); value != "" && !strings.Contains(value, "None") {
			s.note(parameters.at(key), key+" was required; Lunar takes digests whenever the initiator wants them", "require them at the initiators")
		}
	}
}

// lioAuth is whom an object with a user wants; nil: it has none.
func lioAuth(i *item, prefix string) *auth {
	a := &auth{place: i.place}
	for _, p := range []string{prefix, ""} { // older files have no prefix
		if name := i.text(p + "userid"); name != "" {
			a.users = []user{{name, i.text(p + "password")}}
		}
		if name := i.text(p + "mutual_userid"); name != "" {
			a.mutual = user{name, i.text(p + "mutual_password")}
		}
		i.one(p + "password")
		i.one(p + "mutual_password")
	}
	if a.users == nil {
		return nil
	}
	return a
}

// lioKnown are keys that are not used above.
var lioKnown = knowledge{
	quiet: []string{
		"alias", "alua_tg_pt_gp_name", "aio", "exclusive", "offload", "hw_block_size", "hw_max_sectors", "hw_pi_prot_type", "hw_queue_depth", "queue_depth",
		"optimal_sectors", "max_unmap_block_desc_count", "max_unmap_lba_count", "unmap_granularity", "unmap_granularity_alignment", "max_write_same_len",
		"max_data_sg_nents", "is_nonrot", "enforce_pr_isids", "emulate_dpo", "emulate_rest_reord", "emulate_ua_intlck_ctrl", "emulate_tas", "emulate_rsoc", "submit_type", "complete_type",
		"alua_support", "pgr_support", "cache_dynamic_acls", "login_timeout", "netif_timeout", "nopin_timeout", "nopin_response_timeout", "dataout_timeout",
		"dataout_timeout_retries", "random_datain_pdu_offsets", "random_datain_seq_offsets", "random_r2t_offsets", "default_erl", "demo_mode_discovery", "tag", "fabric_prot_type",
		"login_keys_workaround", "prod_mode_write_protect", "t10_pi", "tpg_enabled_sendtargets", "authmethod", "datapduinorder", "datasequenceinorder",
		"defaulttime2retain", "defaulttime2wait", "firstburstlength", "ifmarkint", "ifmarker", "immediatedata", "initialr2t", "maxburstlength", "maxoutstandingr2t",
		"maxrecvdatasegmentlength", "maxxmitdatasegmentlength", "ofmarkint", "ofmarker", "emulate_fua_read", "emulate_fua_write", "emulate_write_cache", "unmap_zeroes_data", "emulate_tpws", "emulate_tpu",
		"emulate_model_alias", "block_size", "write_back", "control",
	},
	usual: map[string]string{"emulate_3pc": "1", "emulate_caw": "1", "emulate_pr": "1", "force_pr_aptpl": "0", "pi_prot_type": "0", "pi_prot_format": "0", "pi_prot_verify": "0", "targetalias": "LIO Target"},
	advice: map[string]string{
		"alua_tpgs":    "set access states with portal-groups.NAME.alua",
		"pi_prot_type": "give the volume protection: 1 or 3",
	},
}
