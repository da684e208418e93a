package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lunar/internal/cli"
)

// successor is the program that has the commands that tgtd had.
const successor = "lunar"

// movedCommands are those commands. They are forwarded for one release.
var movedCommands = strings.Fields("status qos alua reservations apply config sessions kick drain detach rescan adopt forget encrypt")

// moved reports whether a command line is one of the successor's.
func moved(args []string) bool { return len(args) > 0 && slices.Contains(movedCommands, args[0]) }

// forward has the process become the successor, and returns an exit status if that
// fails.
func forward(args []string, messages io.Writer) int {
	fmt.Fprintf(messages, "tgtd: warning: \"tgtd %s\" is \"%s %[1]s\" now; the next release will not have it\n", args[0], successor)
	path, err := beside(successor)
	if err == nil {
		err = syscall.Exec(path, append([]string{successor}, args...), os.Environ())
	}
	fmt.Fprintf(messages, "tgtd: %v\n", err)
	return cli.ExitFailure
}

// beside finds a program in the directory of this one, else in PATH.
func beside(name string) (string, error) {
	if own, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(own), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return exec.LookPath(name)
}
