package admin

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type generationsCommand struct {
	asking    `embed:""`
	selection `embed:""`
	Number    int `arg:"" optional:"" help:"Print the text of this one, without secrets."`
}

// Run lists the last states of the configuration file, or prints one.
func (k generationsCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		if k.Number > 0 {
			return printed(ctx, &k.output, api, c, fmt.Sprintf("%s/%d", control.GenerationsPath, k.Number), func(w io.Writer, g *control.Generation) error {
				_, err := io.WriteString(w, g.Text)
				return err
			})
		}
		return list(ctx, &k.selection, api, c, control.GenerationsPath, rowsOf[control.GenerationList, control.Generation]{
			rows: func(l *control.GenerationList) []control.Generation { return l.Generations },
			document: func(_ *control.GenerationList, rows []control.Generation) any {
				return control.GenerationList{Generations: rows}
			},
			table: generationTable,
		})
	})
}

type rollbackCommand struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	Generation         *int `arg:"" optional:"" help:"Number of a state of the file (lunar generations). Default: the one before the last."`
	DryRun             bool `short:"n" help:"Show the changes without making them. Exit status 3: one of them needs a permission."`
}

// Run puts an earlier state of the file into force.
func (k rollbackCommand) Run(ctx context.Context, c cli.Console) error {
	if k.Generation != nil && *k.Generation < 1 {
		return fmt.Errorf("found %d, expected the number of a state of the file (lunar generations)", *k.Generation)
	}
	return k.ask(func(api *control.Client) error {
		changed, err := api.Rollback(ctx, control.Rollback{Generation: k.generation(), Permissions: control.Permissions{DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink}})
		if err != nil {
			return advisedBy(err, k.Allowances, k.command)
		}
		return concluded(c, "the configuration file", &changed.Applied, k.Allowances, k.command)
	})
}

func (k rollbackCommand) command(with control.Allowances) string {
	if k.Generation == nil {
		return with.Command(k.StateDir, k.Socket, "rollback")
	}
	return with.Command(k.StateDir, k.Socket, "rollback", strconv.Itoa(*k.Generation))
}

// generation is as the API has it: 0 is the one before the last.
func (k rollbackCommand) generation() int {
	if k.Generation == nil {
		return 0
	}
	return *k.Generation
}

type saveCommand struct {
	asking `embed:""`
	DryRun bool `short:"n" help:"Show the changes without writing them."`
}

// Run writes to the file what was changed at run time.
func (k saveCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		changed, err := api.Save(ctx, control.Save{DryRun: k.DryRun})
		if err == nil {
			tellApplied(c, "the configuration file", &changed.Applied)
		}
		return err
	})
}

// generationTable is a row for each state.
var generationTable = listing.Table[control.Generation]{
	{Name: "generation", Of: func(g *control.Generation) any { return g.Number }},
	{Name: "at", Of: func(g *control.Generation) any { return g.At }},
	{Name: "now", Of: func(g *control.Generation) any { return g.Now }},
	{Name: "by", Of: func(g *control.Generation) any { return iscsiname.Printable(g.By) }},
	{Name: "what", Of: func(g *control.Generation) any { return iscsiname.Printable(g.What) }},
}
