package daemon

import (
	"context"
	"fmt"

	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/daemon/volumes"
)

// owned is a shared volume as its node drives it: it implements node.Volume.
type owned struct {
	*volumes.Shared
	forget func(*volumes.Shared) // what other nodes have relayed to this one
}

// Open implements node.Volume.
func (o owned) Open(ctx context.Context, c node.Claim) (ownership.Disk, error) {
	opened, late, err := o.Shared.Open(ctx, volumes.Claim(c))
	if late {
		err = fmt.Errorf("%w: %w", err, node.ErrLate)
	}
	return ownership.Disk{Address: opened.Address, Size: opened.Size, BlockSize: opened.BlockSize}, err
}

// Close implements node.Volume. What other nodes have relayed, and has not begun, does not begin if
// this node has the volume again: they may have answered it by then.
func (o owned) Close(ctx context.Context) error {
	defer o.forget(o.Shared)
	return o.Shared.Close(ctx)
}

// Serve implements node.Volume.
func (o owned) Serve(uint64) { o.Shared.Serve() }

// Hold implements node.Volume.
func (o owned) Hold(last ownership.Record) { o.Shared.Hold(last.Size) }

// Standby implements node.Volume.
func (o owned) Standby(owner ownership.Record) {
	o.Shared.Standby(owner.Node, owner.Epoch, owner.Size)
	o.forget(o.Shared)
}
