package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/cluster"
)

// errTaken: another member does now what one at a time may do.
var errTaken = errors.New("another member of the cluster does that now")

// turn does what one member at a time may do: the one whose lease the key has. do's context ends with
// that lease, which ends after ttl when the member dies. It fails with errTaken.
func turn(ctx context.Context, state cluster.State, key, node string, ttl time.Duration, do func(context.Context) error) error {
	l, err := state.Lease(ctx, ttl)
	if err != nil {
		return err
	}
	defer func() { _ = l.Revoke(context.WithoutCancel(ctx)) }() // it ends by itself else
	_, err = state.Commit(ctx, []cluster.Condition{{Key: key}}, []cluster.Change{{Key: key, Value: []byte(node), Lease: l.ID()}})
	if errors.Is(err, cluster.ErrConflict) {
		return fmt.Errorf("%s: %w", key, errTaken)
	}
	if err != nil {
		return err
	}
	within, end := context.WithCancel(ctx)
	defer end()
	go func() {
		defer end()
		select {
		case <-l.Done():
		case <-within.Done():
		}
	}()
	return do(within)
}
