package state

import (
	"errors"
	"fmt"
	"io/fs"

	"lunar/cluster/revisions"
	"lunar/conf"
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

// clusterConfig is what a state directory knows of the configuration that its server's
// cluster has.
type clusterConfig struct {
	Cluster  string `json:"cluster"`
	Document []byte `json:"document"` // as the cluster's state has it, with its secrets
}

func clusterConfigFile(dir string) File[clusterConfig] {
	return File[clusterConfig]{Marked{"cluster configuration", dir, "cluster-config.json"}}
}

// ClusterConfig is the configuration of a cluster that was in force last; nil: none, or
// another cluster's.
func ClusterConfig(dir, name string) ([]byte, error) {
	kept, err := clusterConfigFile(dir).Peek()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; to take it from the cluster, %s", err, clusterConfigFile(dir).Without())
	case kept == nil || kept.Cluster != name:
		return nil, nil
	}
	return kept.Document, nil
}

// Joint is the cluster's configuration that was in force last where the server of a file has its
// state; nil: none is known there, or the file is of no cluster.
func Joint(dir string, f *conf.File) (*conf.Joint, error) {
	begins, err := f.Beginning()
	if err != nil || begins.Cluster == nil {
		return nil, err
	}
	text, err := ClusterConfig(dir, begins.Cluster.Named)
	if err != nil || text == nil {
		return nil, err
	}
	d, err := revisions.Decode(text)
	if err != nil {
		return nil, err
	}
	return conf.ParseJoint(revisions.Name(d.Revision), d.Text)
}

// KeepClusterConfig notes it, for a start while the cluster's state does not answer.
func KeepClusterConfig(dir, name string, document []byte) error {
	return clusterConfigFile(dir).Save(&clusterConfig{name, document})
}
