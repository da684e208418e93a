// Command tgtd is Lunar's iSCSI target server.
//
// This package is wiring: it reads the command line and the configuration,
// assembles a target.Server and ends it when a signal comes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// commandLine is what may stand on it.
type commandLine struct {
	Serve        serveCommand        `cmd:"" help:"Serve the volumes of a configuration file, or one volume of 1 GiB to this machine without one."`
	Status       statusCommand       `cmd:"" help:"Tell what a running server does: volumes, cache, sessions, event threads."`
	QoS          qosCommand          `cmd:"" name:"qos" help:"Show, change and explain the I/O rates that initiators get from a running server."`
	ALUA         aluaCommand         `cmd:"" name:"alua" help:"Show and change through which portal groups a running server wants its volumes to be used."`
	Reservations reservationsCommand `cmd:"" help:"Show and clear the reservations of a running server's volumes."`
	Apply        applyCommand        `cmd:"" help:"Put a changed configuration file into force on a running server, without touching sessions."`
	Config       configCommand       `cmd:"" help:"Print the configuration that a server runs with, without secrets."`
	Sessions     sessionsCommand     `cmd:"" help:"List the sessions of a running server."`
	Kick         kickCommand         `cmd:"" help:"Ask an initiator to log out, and disconnect it if it does not."`
	Drain        drainCommand        `cmd:"" help:"Keep initiators away from a portal: ask those that are there to log out, and refuse or redirect logins, until the next start."`
	Detach       detachCommand       `cmd:"" help:"Give up a volume that was removed from the configuration and cannot be written."`
	Rescan       rescanCommand       `cmd:"" help:"Make a volume as large as its file or device is now, and tell its initiators."`
	Adopt        adoptCommand        `cmd:"" help:"Say that what is at a volume's path is the volume, after a start has refused it: it gets what is kept of the volume."`
	Forget       forgetCommand       `cmd:"" help:"Say that a volume begins with what is at its path, after a start has refused that: what is kept of the volume is given up."`
	Encrypt      encryptCommand      `cmd:"" help:"Make the header of an encrypted volume whose file or device has held something else, which is given up."`
	Check        checkCommand        `cmd:"" help:"Check a configuration file and say what is wrong with it."`
	Version      versionCommand      `cmd:"" help:"Print the version."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version."`
}

// console is where a command's results and messages go.
type console struct {
	out io.Writer // results: what another program may read
	err io.Writer // log and errors
}

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitDestructive is that of what was refused, or would be, for it destroys something
	// and no flag allows it.
	exitDestructive = 3
)

// exitError is an error with an exit status of its own.
type exitError struct {
	status int
	err    error
}

// Error implements error.
func (e *exitError) Error() string { return e.err.Error() }

func main() {
	alone = true
	os.Exit(run(context.Background(), os.Args[1:], console{os.Stdout, os.Stderr}))
}

// run executes one command line and returns the exit status. A server ends
// when ctx does, as if by SIGTERM.
func run(ctx context.Context, args []string, c console) int {
	exited := -1
	parser := kong.Must(&commandLine{},
		kong.Name("tgtd"),
		kong.Description("Lunar, an iSCSI target server."),
		kong.Writers(c.out, c.err),
		kong.Exit(func(status int) { exited = status }),
		kong.UsageOnError(),
		kong.Vars{"version": versionLine()},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help has printed
	}
	if err != nil {
		fmt.Fprintf(c.err, "tgtd: %v (tgtd --help tells more)\n", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(c.err, "tgtd: %v\n", err)
		if own := (*exitError)(nil); errors.As(err, &own) {
			return own.status
		}
		return exitFailure
	}
	return exitOK
}
