package main

import (
	"fmt"
	"runtime"
)

// version is set when linking: -ldflags "-X main.version=...".
var version = "development"

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(c console) error {
	_, err := fmt.Fprintln(c.out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("tgtd %s %s/%s %s", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
