package state

import (
	"errors"
	"fmt"
	"io/fs"
)

// clusterNote is what a state directory knows of its server's cluster.
type clusterNote struct {
	Cluster  string `json:"cluster"`
	Identity string `json:"identity"`
}

func clusterFile(dir string) File[clusterNote] {
	return File[clusterNote]{Marked{"cluster", dir, "cluster-identity.json"}}
}

// ClusterIdentity is that of a cluster as far as the state directory knows it; empty: it
// does not, or knows another cluster's.
func ClusterIdentity(dir, name string) (string, error) {
	note, err := clusterFile(dir).Load()
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (note == nil || note.Cluster != name):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%w; to ask the cluster for it, %s", err, clusterFile(dir).Without())
	}
	return note.Identity, nil
}

// KeepClusterIdentity notes it.
func KeepClusterIdentity(dir, name, identity string) error {
	return clusterFile(dir).Save(&clusterNote{name, identity})
}
