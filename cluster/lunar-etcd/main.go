// Command lunar-etcd keeps a member of a cluster's etcd: as a child of tgtd that outlives
// it, as a service, or on a machine that is a witness. It is a Go module of its own: etcd's
// modules stay out of the server's.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"lunar/cluster/member"
	"lunar/internal/cli"
	"lunar/internal/systemd"
)

// asEtcd is the first argument of the process that is etcd and nothing else.
const asEtcd = "etcd"

type runCommand struct {
	Dir string `required:"" placeholder:"DIRECTORY" help:"The directory that lunar cluster init or join has made."`
}

// Run keeps the member.
func (r *runCommand) Run(ctx context.Context, c cli.Console) error {
	stop, _, release := cli.OnSignal(ctx, "lunar-etcd", c.Err)
	defer release()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		<-stop
		end()
	}()
	return keeper(member.Dir(r.Dir), c.Err).Run(ctx)
}

type backupCommand struct {
	Dir     string        `required:"" placeholder:"DIRECTORY" help:"The directory of the member, which must not run."`
	Timeout time.Duration `default:"2m" help:"How long etcd may take to read the data."`
	File    string        `arg:"" type:"path" help:"File to write, for lunar cluster restore. It is as secret as the cluster's state."`
}

// Run writes what a member knows whose cluster has no majority any more.
func (b *backupCommand) Run(ctx context.Context, c cli.Console) error {
	stop, _, release := cli.OnSignal(ctx, "lunar-etcd", c.Err)
	defer release()
	ctx, end := context.WithTimeout(ctx, b.Timeout)
	defer end()
	go func() {
		<-stop
		end()
	}()
	keys, at, err := keeper(member.Dir(b.Dir), c.Err).Salvage(ctx, b.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s: %s as this member knew them, at revision %d\n", b.File, cli.Counted(keys, "key"), at)
	return err
}

func keeper(dir member.Dir, messages io.Writer) *member.Keeper {
	service := systemd.FromEnvironment()
	return &member.Keeper{
		Dir: dir, Log: slog.New(slog.NewTextHandler(messages, nil)), Messages: messages,
		Etcd: func(arguments ...string) *exec.Cmd {
			return exec.Command("/proc/self/exe", append([]string{asEtcd}, arguments...)...)
		},
		Ready: func() { _ = service.Ready("a member of the cluster") }, // who started it sees the log
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == asEtcd {
		etcdmain.Main(os.Args[1:])
		return
	}
	grammar := &struct {
		Run     runCommand         `cmd:"" help:"Keep the member of a cluster's etcd that is in a directory, until SIGTERM."`
		Backup  backupCommand      `cmd:"" help:"Write the cluster's state to a file as a member has it in its directory, when the majority is lost for good."`
		Version cli.VersionCommand `cmd:"" help:"Print the version."`
	}{}
	p := cli.Program{Name: "lunar-etcd", Description: "Keep a member of the etcd that nodes of Lunar have together.", Grammar: grammar}
	os.Exit(p.Run(context.Background(), os.Args[1:], cli.Console{Out: os.Stdout, Err: os.Stderr}))
}
