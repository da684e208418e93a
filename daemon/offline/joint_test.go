package offline

import (
	"fmt"
	"strings"
	"testing"

	"lunar/cluster/revisions"
	"lunar/daemon/state"
)

// TestBesideJoint: a file that names what only the cluster's configuration has is read together with
// what was in force last.
func TestBesideJoint(t *testing.T) {
	s := newSite(t)
	s.write("tgtd.yaml", fmt.Appendf(nil, `
cluster: {name: lab, node: n1}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {disk: {type: file, path: %s, encryption: {key-file: %s}}}
targets: {"iqn.2026-11.test:t": {auth-group: hosts, luns: {0: disk}}}
`, s.path("disk.img"), s.path("key")))
	refused := Refused{Config: s.path("tgtd.yaml"), StateDir: s.dir, Volume: "disk"}
	if _, err := s.volume().MakeHeader(); err == nil || !strings.Contains(err.Error(), "hosts") {
		t.Fatalf("nothing in common: found %v", err)
	}
	d := revisions.Document{Revision: 3, ID: "three", Text: []byte("auth-groups: {hosts: {chap: [{user: alice, secret: \"open sesame please\"}]}}\n")}
	text, err := d.Encode()
	if err == nil {
		err = state.KeepClusterConfig(s.dir, "lab", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refused.configuration(s.dir); err != nil {
		t.Errorf("adopt and forget: %v", err)
	}
	if _, err := s.volume().MakeHeader(); err != nil {
		t.Errorf("encrypt: %v", err)
	}
}
