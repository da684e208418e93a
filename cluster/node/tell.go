package node

import (
	"context"
	"encoding/json"

	"lunar/cluster"
)

// Tell has other nodes know something else of this one than Config.About. After an error it
// is told when the node has its next lease.
func (n *Node) Tell(ctx context.Context, about json.RawMessage) error {
	n.about.Store(&about)
	var lease cluster.Lease
	if err := n.do(func() { lease = n.lease }); err != nil || lease == nil {
		return err
	}
	return n.store(ctx, n.record(), lease)
}

// Resized tells the size that a volume which this node owns has got, in bytes: the owner's
// record is to have it.
func (n *Node) Resized(name string, size int64) error {
	return n.do(func() {
		if v := n.volumes[name]; v != nil {
			v.machine.Resized(size)
			v.news = true
		}
	})
}
