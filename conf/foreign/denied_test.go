package foreign

import (
	"strings"
	"testing"
)

// TestDenied: a target that lets nobody in, because it asks for a user and has none, is open to
// nobody afterwards.
func TestDenied(t *testing.T) {
	const lio = `{"storage_objects": [{"plugin": "ramdisk", "name": "r", "size": 1048576}], "targets": [{"fabric": "iscsi", "wwn": "iqn.2026-11.test:t", "tpgs": [
		{"tag": 1, "enable": true, "attributes": {"authentication": 1, "generate_node_acls": 1}, "luns": [{"index": 0, "storage_object": "/backstores/ramdisk/r"}], "portals": [{"ip_address": "127.0.0.1", "port": 3260}]}]}]}`
	const ctld = `auth-group g { SETTINGS }
target iqn.2026-11.test:t { auth-group g
lun 0 { backend ramdisk
size 1M } }`
	ctldOf := func(settings string) string { return strings.Replace(ctld, "SETTINGS", settings, 1) }
	// byPortal asks for an auth-group at each of two portal groups, beside that of the target.
	byPortal := func(target, one, other string) string {
		return "auth-group g { chap u \"twelve bytes or more\" }\nportal-group a { listen 10.0.0.1 }\nportal-group b { listen 10.0.0.2 }\n" +
			"target iqn.2026-11.test:t { " + target + " portal-group a " + one + " portal-group b " + other + " lun 0 { backend ramdisk\nsize 1M } }"
	}
	for _, c := range []struct {
		name, format, text string
		open               bool
	}{
		{"lio", "lio", lio, false},
		{"lio with a user", "lio", strings.Replace(lio, `"luns"`, `"chap_userid": "u", "chap_password": "twelve bytes or more", "luns"`, 1), true},
		{"lio without authentication", "lio", strings.Replace(lio, `"authentication": 1`, `"authentication": 0`, 1), true},
		{"ctld without anything", "ctld", ctldOf(""), false},
		{"ctld with a name", "ctld", ctldOf("initiator-name iqn.2026-11.test:i"), false},
		{"ctld without users", "ctld", ctldOf("auth-type chap"), false},
		{"ctld for everyone", "ctld", ctldOf("auth-type none"), true},
		{"ctld with a user", "ctld", ctldOf(`chap u "twelve bytes or more"`), true},
		{"ctld by portal group, stricter than the target", "ctld", byPortal("auth-group no-authentication", "g", "g"), true},
		{"ctld by portal group", "ctld", byPortal("", "g", "g"), true},
		{"ctld by portal group, one open", "ctld", byPortal("", "g", "no-authentication"), false},
		{"ctld by portal group, one denied", "ctld", byPortal("", "g", ""), false},
		{"ctld by portal group, one of them open as the target is", "ctld", byPortal("auth-group no-authentication", "g", ""), false},
	} {
		made, err := Convert(c.format, File{Name: "f", Data: []byte(c.text)}, nil)
		if err != nil {
			if c.open || !strings.Contains(err.Error(), "nothing of it could be carried over") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if strings.Contains(c.text, "chap ") && c.open && strings.Contains(string(made.YAML), "auth-group: none") {
			t.Errorf("%s: found it open to everyone\n%s", c.name, made.YAML)
		}
		if open := strings.Contains(string(made.YAML), "\ntargets:"); open != c.open {
			t.Errorf("%s: found a target: %v, expected %v\n%s", c.name, open, c.open, made.YAML)
		}
	}
}
