package main

import (
	"fmt"
	"os/user"
	"strconv"

	"lunar/internal/cli"
	"lunar/target/tcp/kernelqtcp"
)

// qtcpCommand loads and unloads the kernel's part of network classes.
type qtcpCommand struct {
	Load   qtcpLoadCommand   `cmd:"" help:"Load and pin it. Needs root; the server then does not."`
	Unload qtcpUnloadCommand `cmd:"" help:"Remove it. Connections that have it keep it until they end."`
}

type qtcpLoadCommand struct {
	User string `default:"root" help:"User that the server runs as."`
}

// Run loads it.
func (k qtcpLoadCommand) Run(c cli.Console) error {
	u, err := user.Lookup(k.User)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("user %s: number %q: %w", k.User, u.Uid, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return fmt.Errorf("user %s: group %q: %w", k.User, u.Gid, err)
	}
	if err := kernelqtcp.Load(uid, gid); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s is loaded and pinned in %s for user %s.\n", kernelqtcp.Name, kernelqtcp.Directory, k.User)
	return err
}

type qtcpUnloadCommand struct{}

// Run removes it.
func (qtcpUnloadCommand) Run(c cli.Console) error {
	if err := kernelqtcp.Unload(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.Out, kernelqtcp.Name+" is not loaded any more.")
	return err
}
