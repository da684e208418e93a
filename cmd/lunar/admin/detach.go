package admin

import (
	"context"
	"fmt"

	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type detachCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volume       string `arg:"" help:"Name of a volume that was removed from the configuration and cannot be written, or has data in the cache."`
	Discard      bool   `help:"Lose acknowledged data that the volume's file or device does not have."`
}

// Run gives up a volume.
func (k detachCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		request := control.Detach{Discard: k.Discard}
		d, finished, err := made(ctx, k.asynchronous, api, c,
			func() (control.Detached, error) { return api.Detach(ctx, k.Volume, request) },
			func() (control.Job, error) { return api.StartDetach(ctx, k.Volume, request) })
		if err != nil || !finished {
			return err
		}
		text := fmt.Sprintf("Volume %s is closed.", k.Volume)
		if d.Kept > 0 {
			text += fmt.Sprintf(" The cache keeps %s that %s does not have: do not use it elsewhere. Configure the volume again, with the same name and path, so that they are written.", bytesize.Text(d.Kept), iscsiname.Printable(d.Store))
		}
		if d.Lost > 0 {
			text += fmt.Sprintf(" %s that were acknowledged to initiators are lost: what %s has is damaged where they belong.", bytesize.Text(d.Lost), iscsiname.Printable(d.Store))
		}
		_, err = fmt.Fprintln(c.Out, text)
		return err
	})
}
