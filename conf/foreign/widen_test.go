package foreign

import (
	"strings"
	"testing"

	"lunar/conf"
)

// TestNothingWidens: what Lunar cannot say is left out, and nobody finds more by that.
func TestNothingWidens(t *testing.T) {
	const (
		scst = "HANDLER vdisk_nullio {\nDEVICE a\nDEVICE b\n}\nTARGET_DRIVER iscsi {\nTARGET iqn.2026-11.test:t {\nenabled 1\n@}\n}\n"
		lio  = `{"storage_objects": [{"plugin": "ramdisk", "name": "a", "size": 1048576}], "targets": [{"fabric": "iscsi", "wwn": "iqn.2026-11.test:t", "tpgs": [@]}]}`
		spdk = `{"subsystems": [{"subsystem": "bdev", "config": [{"method": "bdev_null_create", "params": {"name": "a", "num_blocks": 2048, "block_size": 512}}]}, {"subsystem": "iscsi", "config": [
			{"method": "iscsi_create_portal_group", "params": {"tag": 1, "portals": [{"host": "127.0.0.1", "port": "3260"}]}},
			{"method": "iscsi_create_portal_group", "params": {"tag": 2, "portals": [{"host": "127.0.0.2", "port": "3260"}]}},
			{"method": "iscsi_create_initiator_group", "params": {"tag": 1, "initiators": ["iqn.2026-11.test:i", "!iqn.2026-11.test:bad"], "netmasks": ["ANY"]}},
			{"method": "iscsi_create_initiator_group", "params": {"tag": 2, "initiators": ["!iqn.2026-11.test:bad", "ANY"], "netmasks": ["ANY"]}},
			{"method": "iscsi_create_initiator_group", "params": {"tag": 3, "initiators": ["iqn.2026-11.test:bad", "iqn.2026-11.test:j", "iqn.2026-11.test:*"], "netmasks": ["ANY"]}},
			{"method": "iscsi_create_target_node", "params": {"name": "iqn.2026-11.test:t", "pg_ig_maps": [@], "luns": [{"bdev_name": "a", "lun_id": 0}], "disable_chap": true}}]}]}`
		ctld     = "portal-group p { listen 10.0.0.1 }\nportal-group q { listen name.example }\nauth-group g { auth-type none\n@ }\n" + "target iqn.2026-11.test:t { auth-group g\nportal-group q\nlun 0 { backend ramdisk\nsize 1M } }"
		tpg      = `{"tag": 1, "enable": true, "attributes": {"authentication": 1, "generate_node_acls": 1}, "chap_userid": "u", "chap_password": "twelve bytes or more", "node_acls": [@], "luns": [{"index": 0, "storage_object": "/backstores/ramdisk/a"}], "portals": [{"ip_address": "127.0.0.1", "port": 3260}]}`
		further  = `, {"tag": 2, "enable": true, "portals": [{"ip_address": "127.0.0.2", "port": 3260}]}`
		disabled = `{"tag": 2, "enable": false, "attributes": {"authentication": 0, "generate_node_acls": 1}, "luns": [{"index": 0, "storage_object": "/backstores/ramdisk/a"}], "portals": [{"ip_address": "127.0.0.2", "port": 3260}]}`
	)
	for _, c := range []struct {
		name, format, text, in string
		who                    string // initiators of each rule; -: the target is left out
		portals                string
	}{
		{"SCST: everyone at one portal", "scst", scst, "GROUP g {\nINITIATOR *\\#10.0.0.5\nLUN 0 a\n}\n", "-", ""},
		{"SCST: one at one portal, and others elsewhere", "scst", scst, "GROUP g {\nINITIATOR iqn.2026-11.test:i\\#10.0.0.5\nLUN 0 a\n}\nGROUP h {\nINITIATOR iqn.2026-11.test:*\nINITIATOR iqn.2026-11.test:j\nLUN 0 b\n}\nLUN 0 b\n", "iqn.2026-11.test:j", ""},
		{"SCST: at all portals", "scst", scst, "GROUP g {\nINITIATOR iqn.2026-11.test:i\\#*\nLUN 0 a\n}\nLUN 0 b\n", "iqn.2026-11.test:i;", ""},
		{"SCST: everyone but", "scst", scst, "GROUP g {\nINITIATOR !iqn.2026-11.test:i\nLUN 0 a\n}\nLUN 0 b\n", "-", ""},
		{"SCST: portals by a pattern", "scst", scst, "allowed_portal 10.0.0.*\nLUN 0 a\n", "-", ""},
		{"SCST: disabled", "scst", strings.Replace(scst, "enabled 1", "enabled 0", 1), "LUN 0 a\n", "-", ""},
		{"LIO: a further portal group", "lio", strings.Replace(lio, "@", tpg+further, 1), "", "", "127.0.0.1:3260"},
		{"LIO: a disabled portal group before", "lio", strings.Replace(lio, "@", disabled+","+tpg, 1), "", "", "127.0.0.1:3260"},
		{"LIO: disabled", "lio", strings.Replace(lio, "@", disabled, 1), "", "-", ""},
		{"LIO: one who has no user of his own", "lio", strings.Replace(lio, "@", tpg, 1), `{"node_wwn": "iqn.2026-11.test:i", "mapped_luns": [{"index": 0, "tpg_lun": 0}]}`, "-", ""},
		{"SPDK: names", "spdk", spdk, `{"pg_tag": 1, "ig_tag": 1}, {"pg_tag": 1, "ig_tag": 3}`, "iqn.2026-11.test:i;iqn.2026-11.test:j", "127.0.0.1:3260"},
		{"SPDK: everyone but", "spdk", spdk, `{"pg_tag": 1, "ig_tag": 2}`, "-", ""},
		{"SPDK: others at another portal", "spdk", spdk, `{"pg_tag": 1, "ig_tag": 1}, {"pg_tag": 2, "ig_tag": 3}`, "iqn.2026-11.test:i", "127.0.0.1:3260"},
		{"SPDK: the same at another portal", "spdk", spdk, `{"pg_tag": 1, "ig_tag": 1}, {"pg_tag": 2, "ig_tag": 1}`, "iqn.2026-11.test:i", "127.0.0.1:3260 127.0.0.2:3260"},
		{"SPDK: no portals", "spdk", spdk, `{"pg_tag": 9, "ig_tag": 1}`, "-", ""},
		{"ctld: no portals", "ctld", ctld, "", "-", ""},
		{"ctld: a name with a star", "ctld", strings.Replace(ctld, "name.example", "10.0.0.2", 1), "initiator-name iqn.2026-11.test:*", "-", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := Convert(c.format, File{Name: "f", Data: []byte(strings.Replace(c.text, "@", c.in, 1))}, nil)
			if err != nil && c.who == "-" && strings.Contains(err.Error(), "nothing of it could be carried over") {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg, _, err := conf.ParseDraft("f", made.YAML)
			if err != nil {
				t.Fatal(err)
			}
			who, portals := "-", ""
			for _, target := range cfg.Targets {
				var rules, at []string
				for _, r := range target.Access {
					rules = append(rules, strings.Join(r.Match.Initiators, " "))
				}
				for _, g := range cfg.PortalGroups {
					for _, p := range g.Listen {
						at = append(at, p.String())
					}
				}
				who, portals = strings.Join(rules, ";"), strings.Join(at, " ")
			}
			if who != c.who || c.portals != "" && portals != c.portals {
				t.Errorf("found %q at %q, expected %q at %q\n%s", who, portals, c.who, c.portals, made.YAML)
			}
			if made.Notes == nil {
				t.Error("found no note of it")
			}
		})
	}
}

// TestTagsAreKept: two portal groups of a target do not become one.
func TestTagsAreKept(t *testing.T) {
	made, err := Convert("gotgt", File{Name: "f", Data: []byte(`{"storages": [{"deviceID": 1000, "path": "null:", "online": true}], "iscsiportals": [{"id": 0, "portal": "127.0.0.1:3260"}, {"id": 1, "portal": "127.0.0.2:3260"}],
		"iscsitargets": {"iqn.2026-11.test:t": {"tpgts": {"1": [0], "2": [1]}, "luns": {"0": 1000}}}}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := conf.ParseDraft("f", made.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if g := cfg.PortalGroups; len(g) != 2 || g[0].Tag != 1 || g[1].Tag != 2 {
		t.Errorf("found %+v, expected two portal groups with the tags 1 and 2", g)
	}
}
