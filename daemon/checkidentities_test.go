package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"lunar/cluster/member"
	"lunar/conf"
)

// TestCheckOwners: of an image that one node of a cluster has alone there is a note, and of none
// with owners, or without a cluster.
func TestCheckOwners(t *testing.T) {
	images := []conf.Volume{{Name: "alone", Type: conf.RBDVolume}, {Name: "owned", Type: conf.RBDVolume, Owners: []string{"n1"}}, {Name: "file", Type: conf.FileVolume}}
	notes := checkOwners(&conf.Config{Cluster: &conf.Cluster{Node: "n1"}, Volumes: images})
	if len(notes) != 1 || !strings.Contains(notes[0], "volumes.alone: an image without owners: node n1 alone serves it") {
		t.Errorf("found %q", notes)
	}
	if notes := checkOwners(&conf.Config{Volumes: images}); len(notes) != 0 {
		t.Errorf("without a cluster: found %q", notes)
	}
}

// TestCheckMember: a node's name or cluster that is not the state directory's is found before a start.
func TestCheckMember(t *testing.T) {
	dir := t.TempDir()
	config := func(cluster, node string) *conf.Config {
		return &conf.Config{Cluster: &conf.Cluster{Named: cluster, Node: node, Etcd: conf.Etcd{Mode: conf.EmbeddedEtcd}}}
	}
	if err := errors.Join(checkMember(&conf.Config{}, dir), checkMember(config("lab", "n1"), dir)); err != nil {
		t.Errorf("without a member: found %v", err)
	}
	if err := member.Dir(filepath.Join(dir, "etcd")).Init("lab", member.Node{Name: "n1", Address: "127.0.0.1", Port: member.DefaultPort}, member.DefaultPace, member.DefaultQuota); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"lab", "n2"}, {"lib", "n1"}} {
		if err := checkMember(config(c[0], c[1]), dir); err == nil || !strings.Contains(err.Error(), "found node n1 of cluster lab") {
			t.Errorf("%q: found %v", c, err)
		}
	}
	if err := checkMember(config("lab", "n1"), dir); err != nil {
		t.Errorf("found %v", err)
	}
}
