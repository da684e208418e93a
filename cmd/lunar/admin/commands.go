package admin

import (
	"context"

	"github.com/alecthomas/kong"

	"lunar/internal/cli"
)

// Commands are what may stand on a command line.
type Commands struct {
	Status       statusCommand       `cmd:"" help:"Show the volumes, cache, sessions and event threads of a running server."`
	Top          topCommand          `cmd:"" help:"Watch a running server: what initiators ask for and get, what holds them back, and what would help. ? in it lists the keys."`
	Volume       volumeCommand       `cmd:"" help:"List, show, create, change, delete, freeze and thaw volumes, and their snapshots."`
	Target       targetCommand       `cmd:"" help:"List, show, create, change and delete targets."`
	LUN          lunCommand          `cmd:"" name:"lun" help:"List, show, create, change and delete LUNs of targets."`
	Portal       portalCommand       `cmd:"" help:"List, show, create, change and delete portal groups."`
	AuthGroup    authGroupCommand    `cmd:"" help:"List, show, create, change and delete auth-groups: who may log in."`
	User         userCommand         `cmd:"" help:"List, show, create, change and delete the CHAP users of auth-groups."`
	Initiator    initiatorCommand    `cmd:"" help:"List initiators: who is connected, and who may."`
	Session      sessionCommand      `cmd:"" help:"List, show and end sessions."`
	QoS          qosCommand          `cmd:"" name:"qos" help:"Show, change and explain the I/O rates that initiators get from a running server."`
	ALUA         aluaCommand         `cmd:"" name:"alua" help:"Show and change the access states of portal groups (ALUA)."`
	Cluster      clusterCommand      `cmd:"" help:"Show the cluster that a server is a node of, move its volumes from node to node, make and remove nodes, and keep its state."`
	Reservations reservationsCommand `cmd:"" help:"Show and clear the reservations of a running server's volumes."`
	Apply        applyCommand        `cmd:"" help:"Put a changed configuration file into force on a running server. Untouched sessions go on."`
	Diff         diffCommand         `cmd:"" help:"Show what a configuration file would add (+), change (~) and remove (-) on a running server, and whom that hits."`
	Create       createFileCommand   `cmd:"" help:"Create volumes, targets and other objects of a file on a running server, and write them to its configuration file."`
	Export       exportCommand       `cmd:"" help:"Print the running configuration as it was written, or objects of it, without secrets."`
	Save         saveCommand         `cmd:"" help:"Write what was changed until the next start (lunar qos, lunar alua, --temporary, --keep running) to the configuration file."`
	Generations  generationsCommand  `cmd:"" help:"List the last states of the configuration file, or print one without secrets."`
	Rollback     rollbackCommand     `cmd:"" help:"Put an earlier state of the configuration file into force on a running server, and write it."`
	Config       configCommand       `cmd:"" help:"Print the running configuration without secrets."`
	Sessions     sessionsCommand     `cmd:"" help:"List the sessions of a running server."`
	Latency      latencyCommand      `cmd:"" help:"Show how long commands took in the last 10 seconds, by volume and initiator, the slowest first."`
	Why          whyCommand          `cmd:"" help:"Say whether an initiator would be admitted to a target, what decides, what it would see, and why its last logins failed. Exit status 5: it would not be admitted."`
	Kick         kickCommand         `cmd:"" help:"Ask an initiator to log out, and disconnect it if it stays."`
	Drain        drainCommand        `cmd:"" help:"Keep initiators away from a portal until the next start: ask connected ones to log out, and refuse or redirect logins."`
	Detach       detachCommand       `cmd:"" help:"Close a removed volume whose file or device cannot be written."`
	Resync       resyncCommand       `cmd:"" help:"Take the member of a mirror back that was dropped, once it is mended: what it lacks is copied to it."`
	Rescan       rescanCommand       `cmd:"" help:"Give a volume the present size of its file or device, and tell its initiators."`
	Events       eventsCommand       `cmd:"" help:"Show what has happened to a running server: logins and refusals, changes, health, missed reservations."`
	Jobs         jobsCommand         `cmd:"" help:"List the changes that were answered before they ended (--async), or show, await or cancel one."`
	Trace        traceCommand        `cmd:"" help:"Show the PDUs of a session as they come and go, as text or as a file for Wireshark, without their data."`
	Token        tokenCommand        `cmd:"" help:"Make and remove the tokens by which programs ask a server over TCP."`
	Adopt        adoptCommand        `cmd:"" help:"After a start was refused: confirm that the file or device at a volume's path is the volume. It gets the volume's saved state."`
	Forget       forgetCommand       `cmd:"" help:"After a start was refused: begin the volume anew with the file or device at its path, and delete the volume's saved state."`
	Encrypt      encryptCommand      `cmd:"" help:"Encrypt the data of a volume while the server does not run, or give them up and create its header."`
	Decrypt      decryptCommand      `cmd:"" help:"Write the data of an encrypted volume in clear, while the server does not run."`
	Import       importCommand       `cmd:"" help:"Make a configuration of that of another target, with the identity of its disks: of LIO, tgt, gotgt, SCST, FreeBSD's ctld or SPDK."`
}

// Program is lunar.
func Program() cli.Program {
	return cli.Program{Name: "lunar", Description: "Administer a Lunar iSCSI target server.", Grammar: &struct {
		Commands    `embed:""`
		Version     cli.VersionCommand `cmd:"" help:"Print the version."`
		VersionFlag kong.VersionFlag   `name:"version" help:"Print the version."`
	}{}}
}

// Run executes a command line of lunar and returns the exit status.
func Run(ctx context.Context, args []string, c cli.Console) int {
	return Program().Run(ctx, args, c)
}
