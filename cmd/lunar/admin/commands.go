package admin

import (
	"context"

	"github.com/alecthomas/kong"

	"lunar/internal/cli"
)

// Commands are what may stand on a command line.
type Commands struct {
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
}

// Run executes a command line of lunar and returns the exit status.
func Run(ctx context.Context, args []string, c cli.Console) int {
	return cli.Program{Name: "lunar", Description: "Look after a Lunar iSCSI target server.", Grammar: &struct {
		Commands    `embed:""`
		Version     cli.VersionCommand `cmd:"" help:"Print the version."`
		VersionFlag kong.VersionFlag   `name:"version" help:"Print the version."`
	}{}}.Run(ctx, args, c)
}
