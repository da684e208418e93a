package admin

import (
	"context"
	"fmt"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type diffCommand struct {
	asking `embed:""`
	File   string `arg:"" type:"path" help:"Configuration file."`
}

// Run asks what the file would change, and tells in what the server is other than the
// file that it was started with.
func (k diffCommand) Run(ctx context.Context, c cli.Console) error {
	text, err := conf.ReadFile(k.File)
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		status, err := api.Status(ctx)
		if err != nil {
			return err
		}
		for _, d := range status.Drift {
			fmt.Fprintf(c.Out, "running otherwise than the file of the start: %s: %s\n", d.Kind, iscsiname.Printable(d.What))
		}
		applied, err := api.Apply(ctx, control.File{Name: k.File, Text: string(text), DryRun: true})
		if err != nil {
			return err
		}
		return concluded(c, k.File, &applied, control.Allowances{}, func(with control.Allowances) string {
			return with.ApplyCommand(k.StateDir, k.Socket, k.File)
		})
	})
}
