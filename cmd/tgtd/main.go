// Command tgtd is Lunar's iSCSI target server.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"lunar/daemon"
	"lunar/internal/cli"
	"lunar/internal/systemd"
)

// commandLine is what may stand on it.
type commandLine struct {
	Serve   serveCommand       `cmd:"" help:"Serve the volumes of a configuration file, or one volume of 1 GiB to this machine without one."`
	Check   checkCommand       `cmd:"" help:"Check a configuration file and report all mistakes."`
	QTCP    qtcpCommand        `cmd:"" name:"qtcp" help:"Load and unload QTCP as a congestion control of the kernel, for qos.network.governor: kernel."`
	Version cli.VersionCommand `cmd:"" help:"Print the version."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version."`
}

type serveCommand struct {
	daemon.Options `embed:""`
}

// Run serves until a signal comes or ctx ends.
func (k serveCommand) Run(ctx context.Context, c cli.Console) error {
	stop, hangups, release := cli.OnSignal(ctx, "tgtd", c.Err)
	defer release()
	k.Alone, k.Service = true, systemd.FromEnvironment()
	return k.Serve(c, stop, hangups)
}

type checkCommand struct {
	daemon.CheckOptions `embed:""`
}

// Run checks a configuration file.
func (k checkCommand) Run(c cli.Console) error { return k.Check(c) }

func main() {
	c := cli.Console{Out: os.Stdout, Err: os.Stderr}
	if moved(os.Args[1:]) {
		os.Exit(forward(os.Args[1:], c.Err))
	}
	os.Exit(program().Run(context.Background(), os.Args[1:], c))
}

func program() cli.Program {
	return cli.Program{Name: "tgtd", Description: "Lunar, an iSCSI target server. The program lunar administers a running one.", Grammar: &commandLine{}}
}
