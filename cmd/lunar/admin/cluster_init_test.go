package admin

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// says runs a command line and expects an exit status and words of what it prints.
func says(t *testing.T, status int, words string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	if found := Run(t.Context(), args, cli.Console{Out: &said, Err: &said}); found != status || !strings.Contains(said.String(), words) {
		t.Errorf("%q: found status %d, expected %d, and %q, expected %q", args, found, status, said.String(), words)
	}
}

// TestClusterInit: the first node is made once, with keys that are its owner's alone, and
// what needs its etcd says that it does not answer.
func TestClusterInit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	init := func(more ...string) []string {
		return append([]string{"cluster", "init", "prod", "--state-dir", dir, "--node", "n1", "--address", "127.0.0.1", "--port", strconv.Itoa(port - 1)}, more...)
	}
	says(t, cli.ExitFailure, "there is no member of a cluster", "cluster", "token", "--state-dir", dir)
	says(t, cli.ExitUsage, "expected a whole number with KiB", init("--quota", "many")...)
	says(t, cli.ExitFailure, "five ticks", init("--tick", "200ms")...)
	says(t, cli.ExitOK, "cluster: {name: prod, node: n1}", init()...)
	says(t, cli.ExitFailure, "has a member already, node", init()...)
	says(t, cli.ExitOK, "warning: address 127.0.0.1 leads to this machine alone", init("--state-dir", t.TempDir())...)
	says(t, cli.ExitFailure, "expected one by which the others reach it", init("--state-dir", t.TempDir(), "--address", "224.0.0.1")...)
	says(t, cli.ExitFailure, "found no token", "cluster", "join", "nonsense", "--state-dir", t.TempDir(), "--address", "127.0.0.1")
	says(t, cli.ExitFailure, "found a part of a token", "cluster", "join", "lunar-join-nonsense", "--state-dir", t.TempDir(), "--address", "127.0.0.1")
	says(t, cli.ExitFailure, "does not run on this node: systemctl start lunar-etcd", "cluster", "backup", filepath.Join(dir, "backup"), "--state-dir", dir)
	says(t, cli.ExitFailure, "no quorum of the cluster's members answers", "cluster", "header", "save", "db", filepath.Join(dir, "header"), "--state-dir", dir)
	files, err := filepath.Glob(dir + "/etcd/*")
	if err != nil || len(files) != 5 {
		t.Fatalf("found %q, error %v", files, err)
	}
	for _, file := range append(files, dir+"/etcd") {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: found mode %v, error %v", file, info.Mode(), err)
		}
	}
}
