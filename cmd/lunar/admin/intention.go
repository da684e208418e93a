package admin

import (
	"context"
	"fmt"

	"lunar/daemon/offline"
	"lunar/internal/cli"
)

type adoptCommand struct {
	offline.Refused `embed:""`
}

// Run says that what is at the volume's path is the volume.
func (k adoptCommand) Run(ctx context.Context, c cli.Console) error {
	found, err := k.Adopt(ctx)
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "At the next start, what is kept of volume %s goes to what is there now (%s, %d bytes), and that is served.\n", k.Volume, found.Identity, found.Size)
	}
	return err
}

type forgetCommand struct {
	offline.Refused `embed:""`
}

// Run says that the volume begins with what is at its path.
func (k forgetCommand) Run(ctx context.Context, c cli.Console) error {
	found, err := k.Forget(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("the present file or device (%s, %d bytes) is served as it is", found.Identity, found.Size)
	if found.Missing {
		what = "a file is made if it is still missing"
	}
	_, err = fmt.Fprintf(c.Out, "At the next start, what is kept of volume %s is given up, and %s.\n", k.Volume, what)
	return err
}
