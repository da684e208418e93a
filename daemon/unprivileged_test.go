package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// nobody is an ordinary user.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// give makes files that user's.
func give(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Chown(path, int(nobody.Uid), int(nobody.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// nobodysDir is a directory of that user, with the test binary, which that user may not
// run where it is.
func nobodysDir(t *testing.T) (dir, binary string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user; without root all tests are this one")
	}
	dir, err := os.MkdirTemp("", "lunar-unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	give(t, dir)
	binary = filepath.Join(dir, "tgtd")
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, binary
}

// TestUnprivileged: a server of an ordinary user without any capability serves, writes
// back, encrypts, changes and stops, with all that confines it.
func TestUnprivileged(t *testing.T) {
	dir, binary := nobodysDir(t)
	segment, err := os.MkdirTemp("/dev/shm", "lunar-unprivileged")
	if err != nil {
		t.Skipf("no shared memory: %v", err)
	}
	defer os.RemoveAll(segment)
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "tgtd.yaml")
	writeFile(t, key, strings.Repeat("5a", 32))
	config := "server: {threads: 1, buffers-per-thread: 4MiB}\ncache: {size: 16MiB, segment: " + segment + "/cache}\n" +
		"portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\n" +
		"volumes:\n  back: {type: file, path: back, size: 4MiB, write: back, cache: true}\n" +
		"  secret: {type: file, path: secret, size: 4MiB, encryption: {key-file: " + key + "}}\n"
	writeFile(t, file, config+"targets: {\"iqn.2026-11.test:t\": {luns: {0: back}}}\n")
	give(t, segment, key, file)
	state := filepath.Join(dir, "state")
	c := serveChildOf(t, binary, nobody, "-c", file, "--state-dir", state)
	if caps := processStatus(t, c.cmd.Process.Pid, "CapEff"); len(caps) != 1 || !caps["0000000000000000"] {
		t.Errorf("found capabilities %v", caps)
	}
	writeFile(t, file, config+"targets: {\"iqn.2026-11.test:t\": {luns: {0: back, 1: secret}}}\n")
	var out eventually.Output
	if status := run(t.Context(), []string{"apply", "--state-dir", state, file}, cli.Console{Out: &out, Err: &out}); status != cli.ExitOK {
		t.Errorf("apply ended with %d: %s", status, &out)
	}
	if err := c.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("found %v: %s", err, c.log)
	}
}

// TestKeysThatCannotBeLocked: keys that a running server gets and may not lock in memory
// are told by the answer that brings them, the log and the status.
func TestKeysThatCannotBeLocked(t *testing.T) {
	dir, binary := nobodysDir(t)
	key, file, state := filepath.Join(dir, "key"), filepath.Join(dir, "tgtd.yaml"), filepath.Join(dir, "state")
	writeFile(t, key, strings.Repeat("5a", 32))
	const plain = "server: {threads: 1, buffers-per-thread: 4MiB}\nportal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\n" +
		"targets: {\"iqn.2026-11.test:t\": {luns: {0: v}}}\nvolumes:\n  v: {type: ram, size: 1MiB}\n"
	writeFile(t, file, plain)
	give(t, key, file)
	restore := lockNothing(t)
	c := serveChildOf(t, binary, nobody, "-c", file, "--state-dir", state)
	restore()
	lunar := func(args ...string) string {
		t.Helper()
		var out eventually.Output
		if status := run(t.Context(), append(args, "--state-dir", state), cli.Console{Out: &out, Err: &out}); status != cli.ExitOK {
			t.Fatalf("%q ended with %d: %s", args, status, &out)
		}
		return out.String()
	}
	const told = "keys of volumes are not locked in memory"
	if before := lunar("status") + c.log.String(); strings.Contains(before, told) {
		t.Errorf("found %q before there is a key:\n%s", told, before)
	}
	writeFile(t, file, plain+"  secret: {type: file, path: secret, size: 1MiB, encryption: {key-file: "+key+"}}\n")
	for where, text := range map[string]string{"answer": lunar("apply", file), "status": lunar("status"), "log": c.log.String()} {
		if !strings.Contains(text, told) || !strings.Contains(text, "RLIMIT_MEMLOCK") {
			t.Errorf("%s: found no %q in\n%s", where, told, text)
		}
	}
	if again := lunar("apply", file); strings.Contains(again, told) {
		t.Errorf("a change without keys tells of them:\n%s", again)
	}
	if err := c.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("found %v: %s", err, c.log)
	}
}

// lockNothing lets processes that are started until restore is called lock no memory.
func lockNothing(t *testing.T) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was); err != nil {
		t.Fatal(err)
	}
	set := func(to unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &to); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Max: was.Max})
	restore = sync.OnceFunc(func() { set(was) })
	t.Cleanup(restore)
	return restore
}
