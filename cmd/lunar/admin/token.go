package admin

import (
	"context"
	"fmt"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/control/token"
	"lunar/internal/cli"
)

type tokenCommand struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token, print it once, and add what the server knows it by to a file (server.control.token-file)."`
	List   tokenListCommand   `cmd:"" help:"List whose tokens are in a file, and their roles."`
	Delete tokenDeleteCommand `cmd:"" help:"Remove a token from a file. The server refuses it from then on."`
}

type tokenFile struct {
	File string `arg:"" type:"path" help:"File of tokens."`
}

type tokenCreateCommand struct {
	tokenFile `embed:""`
	Name      string `arg:"" help:"What log and audit call whoever has the token."`
	Role      string `required:"" enum:"read,operate,admin" help:"What it allows: read, operate or admin."`
}

// Run makes a token.
func (k tokenCreateCommand) Run(_ context.Context, c cli.Console) error {
	role, err := control.ParseRole(k.Role)
	if err != nil {
		return err
	}
	text, e, err := token.New(role, k.Name)
	if err != nil {
		return err
	}
	if err := token.Add(k.File, e); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, text)
	return err
}

type tokenListCommand struct {
	tokenFile `embed:""`
}

// Run lists the tokens of a file.
func (k tokenListCommand) Run(_ context.Context, c cli.Console) error {
	entries, err := token.Read(k.File)
	if err != nil {
		return err
	}
	return tokenTable.Write(c.Out, entries, &listing.Options{})
}

// tokenTable is a row for each token.
var tokenTable = listing.Table[token.Entry]{
	{Name: "name", Of: func(e *token.Entry) any { return e.Name }},
	{Name: "role", Of: func(e *token.Entry) any { return e.Role }},
}

type tokenDeleteCommand struct {
	tokenFile `embed:""`
	Name      string `arg:"" help:"Whose token."`
}

// Run removes a token.
func (k tokenDeleteCommand) Run(context.Context, cli.Console) error {
	return token.Remove(k.File, k.Name)
}
