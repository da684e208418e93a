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
	_, err := fmt.Fprintf(c.out, "tgtd %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}
