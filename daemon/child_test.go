package daemon

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/internal/cli"
	"lunar/internal/confine"
	"lunar/internal/eventually"
)

// childVariable makes the test binary be tgtd, so that a test can kill it.
const childVariable = "TGTD_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		alone, enforcing = true, confine.Trap // a system call that is missing on the list ends the child, with its stack
		os.Exit(run(context.Background(), os.Args[1:], cli.Console{Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// child is a tgtd in a process of its own.
type child struct {
	portal string // of the first portal
	log    *eventually.Output
	cmd    *exec.Cmd
	ended  chan error
}

// serveChild runs "tgtd serve" and returns when its portals are open.
func serveChild(t *testing.T, args ...string) *child {
	t.Helper()
	return serveChildOf(t, os.Args[0], nil, args...)
}

// serveChildOf is serveChild for a copy of the test binary and another user.
func serveChildOf(t *testing.T, binary string, user *syscall.Credential, args ...string) *child {
	t.Helper()
	return serveChildWith(t, binary, user, nil, args...)
}

// serveChildWith is serveChildOf with open files, from descriptor 3 on, which are closed here.
func serveChildWith(t *testing.T, binary string, user *syscall.Credential, files []*os.File, args ...string) *child {
	t.Helper()
	c := &child{log: &eventually.Output{}, ended: make(chan error, 1)}
	c.cmd = exec.Command(binary, append([]string{"serve"}, args...)...)
	if user != nil {
		c.cmd.Dir, c.cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: user}
	}
	c.cmd.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr, c.cmd.ExtraFiles = c.log, files
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = c.cmd.Start()
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	for c.portal == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not start: %v, %v\n%s", err, c.cmd.Wait(), c.log)
		}
		if m := discoveryLine.FindStringSubmatch(line); m != nil {
			c.portal = m[1]
		}
	}
	go func() {
		io.Copy(io.Discard, lines)
		c.ended <- c.cmd.Wait()
	}()
	return c
}

// end sends a signal, waits, and returns how the process ended.
func (c *child) end(t *testing.T, s syscall.Signal) error {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-c.ended:
		if strings.Contains(c.log.String(), "DATA RACE") {
			t.Errorf("found a data race in\n%s", c.log)
		}
		return err
	case <-time.After(60 * time.Second):
		t.Fatalf("tgtd has not ended after %v\n%s", s, c.log)
		return nil
	}
}
