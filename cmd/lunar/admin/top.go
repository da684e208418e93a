package admin

import (
	"context"
	"io"
	"os"

	"lunar/cmd/lunar/top"
	"lunar/control"
	"lunar/internal/cli"
)

type topCommand struct {
	asking `embed:""`
	output `embed:""`
	Once   bool `help:"Print it once as text. So it is where the output is no terminal."`
}

// Run shows what there is to see until somebody quits.
func (k topCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		out, _ := c.Out.(*os.File)
		if form != asTable || k.Once || !terminal(c.Out) || !terminal(os.Stdin) {
			return printed(ctx, &k.output, api, c, control.OverviewPath, func(w io.Writer, o *control.Overview) error { return top.Once(w, o) })
		}
		_, err := following(ctx, c, func(ctx context.Context) error {
			return top.Run(ctx, top.Terminal{In: os.Stdin, Out: out, Environ: os.Environ(), Colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}, api.Overview)
		})
		return err
	})
}
