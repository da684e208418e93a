package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/shell"
)

// traced is a tgtd whose system calls are written down.
type traced struct {
	*child
	calls string // path
}

// serveTraced is serveChild below strace with these options; the configuration and the state
// are in dir. It skips the test where there is no strace.
func serveTraced(t *testing.T, dir, config, options string) traced {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace, which counts system calls (scripts/setup test)")
	}
	calls, binary := filepath.Join(dir, "calls"), filepath.Join(dir, "traced")
	script := fmt.Sprintf("#!/bin/sh\nexec %s -D -f -o %s %s %s \"$@\"\n", strace, shell.CommandLine(calls), options, shell.CommandLine(os.Args[0]))
	for path, text := range map[string]string{filepath.Join(dir, "c.yaml"): config, binary: script} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := serveChildOf(t, binary, nil, "-c", filepath.Join(dir, "c.yaml"), "--state-dir", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "socket"))
	return traced{c, calls}
}

// kill ends it, for a stop in order does more, and returns what it did.
func (s traced) kill(t *testing.T) string {
	t.Helper()
	_ = s.end(t, syscall.SIGKILL)
	var text []byte
	eventually.Holds(t, "the end of the trace", func() bool {
		text, _ = os.ReadFile(s.calls)
		return strings.Contains(string(text), "+++ killed by SIGKILL +++")
	})
	return string(text)
}
