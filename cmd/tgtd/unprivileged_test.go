package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnprivileged: a server of an ordinary user without any capability serves, writes
// back, encrypts, changes and stops, with all that confines it.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user; without root all tests are this one")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "lunar-unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
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
	for _, path := range []string{dir, segment, key, file} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "tgtd") // that user may not run the test's own
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	c := serveChildOf(t, binary, &syscall.Credential{Uid: nobody, Gid: nobody}, "-c", file, "--state-dir", state)
	if caps := processStatus(t, c.cmd.Process.Pid, "CapEff"); len(caps) != 1 || !caps["0000000000000000"] {
		t.Errorf("found capabilities %v", caps)
	}
	writeFile(t, file, config+"targets: {\"iqn.2026-11.test:t\": {luns: {0: back, 1: secret}}}\n")
	var out buffer
	if status := run(t.Context(), []string{"apply", "--state-dir", state, file}, console{&out, &out}); status != exitOK {
		t.Errorf("apply ended with %d: %s", status, &out)
	}
	if err := c.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("found %v: %s", err, c.log)
	}
}
