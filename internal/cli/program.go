package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"lunar/internal/version"
)

// Console is where a command's results and messages go.
type Console struct {
	Out io.Writer // results: what another program may read
	Err io.Writer // log and errors
}

// Exit statuses. Statuses says what they mean.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitDestructive = 3
	ExitUnreachable = 4
	ExitNo          = 5
)

// Statuses are the exit statuses of all programs with their meaning, for the documentation.
var Statuses = []struct {
	Status  int
	Meaning string
}{
	{ExitOK, "It is done; or, of a question, the answer is yes."},
	{ExitFailure, "It was refused, or failed: the message says what was found and what was expected. Nothing was changed unless the message says so."},
	{ExitUsage, "The command line has a mistake; nothing was asked or changed."},
	{ExitDestructive, "It was refused, or would be, because it destroys something or hits somebody, and no flag allows it: `--yes` or `--allow-shrink VOLUME`. The message has the command that does it."},
	{ExitUnreachable, "No server answers: it does not run, has another state directory or socket, or this user may not connect to it."},
	{ExitNo, "The question was answered, and the answer is no."},
}

// ExitError is an error with an exit status of its own.
type ExitError struct {
	Status int
	Err    error
}

// Error implements error.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the status.
func (e *ExitError) Unwrap() error { return e.Err }

// Program is a command line program. Its grammar is a struct as kong reads it, whose
// commands take a context.Context and a Console.
type Program struct {
	Name, Description string
	Grammar           any
}

// command is the command that a command line with a mistake chose, or the program.
func (p Program) command(err error) string {
	var mistake *kong.ParseError
	if errors.As(err, &mistake) && mistake.Context != nil {
		if chosen := mistake.Context.Selected(); chosen != nil {
			return chosen.FullPath()
		}
	}
	return p.Name
}

// Run executes one command line and returns the exit status. A command that waits ends
// when ctx does, as if by SIGTERM.
func (p Program) Run(ctx context.Context, args []string, c Console) int {
	exited := -1
	parser := kong.Must(p.Grammar,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(status int) { exited = status }),
		kong.UsageOnError(),
		kong.Vars{"version": version.Line(p.Name)},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
	)
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && args[0] == describeWord:
		if err := describe(c.Out, parser.Model); err != nil {
			return ExitFailure
		}
		return ExitOK
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help has printed
	}
	if err != nil {
		fmt.Fprintf(c.Err, "%s: %v (%s --help tells more)\n", p.Name, err, p.command(err))
		return ExitUsage
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(c.Err, "%s: %v\n", p.Name, err)
		if own := (*ExitError)(nil); errors.As(err, &own) {
			return own.Status
		}
		return ExitFailure
	}
	return ExitOK
}

// VersionCommand prints the version of the program.
type VersionCommand struct{}

// Run prints the version.
func (VersionCommand) Run(c Console, vars kong.Vars) error {
	_, err := fmt.Fprintln(c.Out, vars["version"])
	return err
}
