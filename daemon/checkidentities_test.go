package daemon

import (
	"strings"
	"testing"

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
