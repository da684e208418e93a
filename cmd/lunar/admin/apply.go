package admin

import (
	"context"
	"errors"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
)

type applyCommand struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	asynchronous       `embed:""`
	File               string `arg:"" optional:"" type:"path" help:"Configuration file. If any change in it needs a restart, none is put into force."`
	Config             string `short:"c" type:"path" placeholder:"FILE" help:"The same."`
	Cluster            bool   `help:"Make the file the configuration that all nodes of the cluster have in common. No node changes anything if one refuses it."`
	DryRun             bool   `short:"n" help:"Show the changes without making them. Exit status 3: one of them needs a permission."`
}

// Run sends the file to the server.
func (k applyCommand) Run(ctx context.Context, c cli.Console) error {
	switch {
	case k.File+k.Config == "":
		return usage(errors.New("found no configuration file, expected one: lunar apply FILE"))
	case k.File != "" && k.Config != "":
		return usage(errors.New("found two configuration files, expected one: lunar apply FILE"))
	}
	k.Config += k.File
	text, err := conf.ReadFile(k.Config)
	if err != nil {
		return err
	}
	if k.Cluster {
		return k.inCluster(ctx, c, string(text))
	}
	return k.ask(func(api *control.Client) error {
		file := control.File{Name: k.Config, Text: string(text), DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink}
		applied, finished, err := made(ctx, k.asynchronous, api, c,
			func() (control.Applied, error) { return api.Apply(ctx, file) },
			func() (control.Job, error) { return api.StartApply(ctx, file) })
		if err != nil || !finished {
			return advisedBy(err, k.Allowances, k.command)
		}
		return concluded(c, k.Config, &applied, k.Allowances, k.command)
	})
}

// command is the command line with other allowances.
func (k applyCommand) command(with control.Allowances) string {
	if k.Cluster {
		return with.Command(k.StateDir, k.Socket, "apply", "--cluster", k.Config)
	}
	return with.ApplyCommand(k.StateDir, k.Socket, k.Config)
}
