package admin

import (
	"context"

	"lunar/internal/cli"
)

// following runs what goes on until it ends, somebody interrupts it, or the terminal has
// gone: interrupted tells the latter two.
func following(ctx context.Context, c cli.Console, run func(context.Context) error) (interrupted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, hangups, release := cli.OnSignal(ctx, "lunar", c.Err)
	defer release()
	go func() {
		select {
		case <-stop:
		case <-hangups:
		case <-ctx.Done():
		}
		cancel()
	}()
	err = run(ctx)
	return ctx.Err() != nil, err
}
