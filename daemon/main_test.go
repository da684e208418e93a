package daemon

import (
	"context"

	"github.com/alecthomas/kong"

	"lunar/cmd/lunar/admin"
	"lunar/internal/cli"
	"lunar/internal/systemd"
)

// commandLine is what tests run: the commands of tgtd and of lunar in one program.
type commandLine struct {
	Serve   serveCommand       `cmd:""`
	Check   checkCommand       `cmd:""`
	Version cli.VersionCommand `cmd:""`
	QTCP    struct {
		Load struct {
			User string
		} `cmd:""`
		Unload struct{} `cmd:""`
	} `cmd:"" name:"qtcp"` // cmd/tgtd has it
	admin.Commands `embed:""`
	VersionFlag    kong.VersionFlag `name:"version"`
}

type serveCommand struct {
	Options `embed:""`
}

// Run serves until a signal comes or ctx ends.
func (k serveCommand) Run(ctx context.Context, c cli.Console) error {
	stop, hangups, release := cli.OnSignal(ctx, "tgtd", c.Err)
	defer release()
	k.Alone, k.Service = alone, systemd.FromEnvironment()
	return k.Serve(c, stop, hangups)
}

type checkCommand struct {
	CheckOptions `embed:""`
}

// Run checks a configuration.
func (k checkCommand) Run(c cli.Console) error { return k.Check(c) }

// alone is set in a process of its own.
var alone bool

// run executes one command line and returns the exit status. A server ends when ctx
// does, as if by SIGTERM.
func run(ctx context.Context, args []string, c cli.Console) int {
	return cli.Program{Name: "tgtd", Description: "Lunar.", Grammar: &commandLine{}}.Run(ctx, args, c)
}
