package node

import (
	"context"
	"errors"

	"lunar/cluster"
)

// Forget removes what the state has of the owners of volumes that a revision of the cluster's
// configuration does not have (ownership.Observer.Forget), and returns how many volumes that were.
// The rest is removed by asking again. It fails with the errors of cluster.State, but for
// ErrConflict: somebody else was faster, or has one of the volumes again.
func (n *Node) Forget(ctx context.Context, volumes []string, revision int64) (forgotten int, err error) {
	var conditions []cluster.Condition
	var changes []cluster.Change
	if err := n.do(func() { conditions, changes = n.observer.Forget(volumes, revision) }); err != nil || len(changes) == 0 {
		return 0, err
	}
	if _, err = n.config.State.Commit(ctx, conditions, changes); err != nil {
		if errors.Is(err, cluster.ErrConflict) {
			err = nil
		}
		return 0, err
	}
	return len(conditions) - 1, nil // the last one is about all
}
