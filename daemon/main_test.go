package daemon

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"syscall"

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

// awaitForks waits until processes that other tests start run their program: until then they
// have the locks of servers that have ended here meanwhile.
func awaitForks() {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
}

// run executes one command line and returns the exit status. A server ends when ctx
// does, as if by SIGTERM.
func run(ctx context.Context, args []string, c cli.Console) int {
	awaitForks()
	return cli.Program{Name: "tgtd", Description: "Lunar.", Grammar: grammarFor(args)}.Run(ctx, args, c)
}

// grammarFor is the part of commandLine that has the command of a command line, if that is
// enough: to read all of it takes a tenth of a second with the race detector.
func grammarFor(args []string) any {
	if len(args) == 0 || slices.Contains(args, "--help") {
		return &commandLine{}
	}
	for _, all := range []reflect.Type{reflect.TypeFor[commandLine](), reflect.TypeFor[admin.Commands]()} {
		for i := range all.NumField() {
			f := all.Field(i)
			if _, command := f.Tag.Lookup("cmd"); command && cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) == args[0] {
				return reflect.New(reflect.StructOf([]reflect.StructField{f})).Interface()
			}
		}
	}
	return &commandLine{}
}
