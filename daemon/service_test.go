package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/systemd/systemdtest"
)

// serveAsService runs the next process of a manager's service.
func serveAsService(t *testing.T, m *systemdtest.PID1, args ...string) *child {
	t.Helper()
	names, files := m.Kept()
	binary := filepath.Join(t.TempDir(), "tgtd")
	text := fmt.Sprintf("#!/bin/sh\nexport LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES='%s' NOTIFY_SOCKET='%s' WATCHDOG_USEC=400000\nexec '%s' \"$@\"\n",
		len(files), strings.Join(names, ":"), m.Socket, os.Args[0])
	if err := os.WriteFile(binary, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return serveChildWith(t, binary, nil, files, args...)
}

// TestService: a service manager hears how the server is, and keeps its portals open from
// one process to the next: who connects meanwhile is served, and portals that the next
// configuration does not have are closed.
func TestService(t *testing.T) {
	m, dir := systemdtest.New(t), t.TempDir()
	file := filepath.Join(dir, "tgtd.yaml")
	listen := func(portals string) {
		writeFile(t, file, "portal-groups: {p: {listen: ["+portals+"]}}\nvolumes: {v: {type: \"null\", size: 1MiB}}\n"+
			"targets: {\"iqn.2026-11.test:t\": {auth-group: none, luns: {0: v}}}\n")
	}
	a, b, c := freePort(t), freePort(t), freePort(t)
	listen(strconv.Quote(a) + ", " + strconv.Quote(b))
	args := []string{"-c", file, "--state-dir", filepath.Join(dir, "state")}
	first := serveAsService(t, m, args...)
	for _, line := range []string{"READY=1", "STATUS=Serving 1 volume, 1 target, 0 sessions", "WATCHDOG=1"} {
		eventually.Holds(t, line, func() bool { return m.Heard(line) })
	}
	kept := func(portals ...string) {
		t.Helper()
		names, files := m.Kept()
		for _, f := range files {
			f.Close()
		}
		for i, p := range portals {
			portals[i] = "kept_" + strings.ReplaceAll(p, ":", "_")
		}
		slices.Sort(portals)
		if !slices.Equal(names, portals) {
			t.Fatalf("found %q kept, expected %q", names, portals)
		}
	}
	kept(a, b)
	listen(strconv.Quote(a) + ", " + strconv.Quote(c)) // a portal is exchanged
	if err := first.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the end of RELOADING=1", func() bool {
		said := m.Said()
		at := slices.Index(said, "RELOADING=1")
		return at >= 0 && slices.Contains(said[at:], "READY=1")
	})
	kept(a, c)
	if err := first.end(t, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !m.Heard("STOPPING=1") {
		t.Error("did not hear STOPPING=1")
	}
	kept(a, c)
	waiting, err := net.Dial("tcp", a) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	listen(strconv.Quote(a) + ", " + strconv.Quote(strings.Replace(c, "127.0.0.1", "0.0.0.0", 1))) // in the way of which c is
	second := serveAsService(t, m, args...)
	conn := initiator.NewConn(waiting)
	if err := conn.Login(initiator.Options{Target: "iqn.2026-11.test:t"}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ready(0); err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "the status of a session", func() bool { return m.Heard("STATUS=Serving 1 volume, 1 target, 1 session") })
	conn.Close()
	kept(a, strings.Replace(c, "127.0.0.1", "0.0.0.0", 1))
	if err := second.end(t, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
