package member

import (
	"fmt"
	"os"

	"lunar/cluster/etcd"
)

// Is fails with ErrNoMember, and for another cluster's or node's directory.
func (d Dir) Is(cluster, node string) error {
	s, err := d.Settings()
	if err == nil && (s.Cluster != cluster || s.Node.Name != node) {
		err = fmt.Errorf("%s: found node %s of cluster %s, expected node %s of cluster %s", d, s.Node.Name, s.Cluster, node, cluster)
	}
	return err
}

// Open opens a node's state by the member of the directory, which it starts if nobody has;
// messages gets the log of what it starts. It waits for no quorum. It fails with ErrNoMember,
// for another cluster's or node's directory, and without lunar-etcd.
func (d Dir) Open(cluster, node string, messages *os.File) (*etcd.State, error) {
	if err := d.Is(cluster, node); err != nil {
		return nil, err
	}
	if !d.Runs() {
		program, err := Program()
		if err != nil {
			return nil, fmt.Errorf("the member in %s does not run, and there is no program to start it: %w (package lunar-etcd)", d, err)
		}
		if err := d.Start(program, messages); err != nil {
			return nil, err
		}
	}
	o, err := d.Options()
	if err != nil {
		return nil, err
	}
	return etcd.Open(o)
}
