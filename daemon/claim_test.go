package daemon

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// contentsOf describes everything below directories: names, times, and what files
// hold.
func contentsOf(t *testing.T, dirs ...string) string {
	t.Helper()
	var out strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s %v %d", path, info.Mode(), info.Size())
			if strings.HasSuffix(path, ".img") { // which may be written at any time
				out.WriteByte('\n')
				return nil
			}
			var text []byte
			if info.Mode().IsRegular() && info.Size() < 1<<20 {
				text, err = os.ReadFile(path)
			}
			fmt.Fprintf(&out, " %v %q\n", info.ModTime(), text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestStateDirIsClaimed: of two servers with a state directory the second one is told
// of the first and changes nothing, whatever becomes of the lock file; offline
// commands that write there neither. The claim ends with its holder.
func TestStateDirIsClaimed(t *testing.T) {
	w := newWriteBack(t)
	s := serveChild(t, w.args()...)
	other := filepath.Join(t.TempDir(), "other.yaml")
	writeFile(t, other, "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes: {other: {type: file, path: other.img, size: 1MiB}}\ntargets: {\"iqn.2026-11.test:t\": {luns: {0: other}}}\n")
	ended, end := context.WithCancel(t.Context()) // a second server that is not refused stops at once
	end()
	refused := func(what, named string) {
		t.Helper()
		before := contentsOf(t, w.dir)
		for _, config := range []string{w.config, other} {
			var log eventually.Output
			status := run(ended, []string{"serve", "-c", config, "--state-dir", w.dir, "--socket", filepath.Join(t.TempDir(), "s")}, cli.Console{Out: io.Discard, Err: &log})
			if status != cli.ExitFailure || !strings.Contains(log.String(), "state directory "+w.dir) || !strings.Contains(log.String(), named) {
				t.Errorf("%s: found status %d and %s", what, status, &log)
			}
		}
		if after := contentsOf(t, w.dir); after != before {
			t.Errorf("%s: found\n%s, expected\n%s", what, after, before)
		}
	}
	pid := "pid " + strconv.Itoa(s.cmd.Process.Pid)
	refused("while one runs", pid)
	if status, out, log := w.check(t); status != cli.ExitOK {
		t.Errorf("check: %d\n%s%s", status, out, log)
	}
	lock := filepath.Join(w.dir, state.ClaimName)
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	refused("with the lock file deleted", "another process")
	writeFile(t, lock, "")
	refused("with the lock file replaced", "another process")
	s.end(t, syscall.SIGKILL)
	s = serveChild(t, w.args()...)
	refused("after a kill", "pid "+strconv.Itoa(s.cmd.Process.Pid))
	s.end(t, syscall.SIGTERM)
	serve(t, w.args()...).stop()
	if text, err := os.ReadFile(lock); err != nil || len(text) > 0 {
		t.Errorf("found %q, %v in the lock file after a stop, expected nothing", text, err)
	}
}

// TestOfflineCommandsClaim: neither the header of a volume nor an intention is put into a state
// directory that a server has which cannot be asked.
func TestOfflineCommandsClaim(t *testing.T) {
	v := newVault(t)
	_, err := state.ServerIdentity(v.dir) // which a server has that has used it
	if err != nil {
		t.Fatal(err)
	}
	held, err := state.Take(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	before := contentsOf(t, v.dir)
	var log eventually.Output
	encrypt := []string{"encrypt", v.config, "plain", "--give-up-data", "--state-dir", v.dir}
	if status := run(t.Context(), encrypt, cli.Console{Out: io.Discard, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "in use by") {
		t.Errorf("found status %d and %s", status, &log)
	}
	for _, command := range []string{"adopt", "forget"} {
		var log eventually.Output
		if status := run(t.Context(), []string{command, "plain", "-c", v.config, "--state-dir", v.dir}, cli.Console{Out: io.Discard, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "in use by") {
			t.Errorf("%s: found status %d and %s", command, status, &log)
		}
	}
	if after := contentsOf(t, v.dir); after != before {
		t.Errorf("found\n%s, expected\n%s", after, before)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), encrypt, cli.Console{Out: io.Discard, Err: &log}); status != cli.ExitOK {
		t.Errorf("found status %d and %s", status, &log)
	}
}

// TestClaim: it is inherited by nobody, and each of its locks is enough.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, state.ClaimName)
	held, err := state.Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{held.Dir, held.File} {
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: found flags %#x, %v, expected one that is closed by execve", f.Name(), flags, err)
		}
	}
	held.Dir.Close() // as if the file system locked no directories
	if _, err := state.Take(dir); err == nil || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("found %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("found %q, %v in the lock file", text, err)
	}
	stale, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	held.File.Close()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "")
	if err := state.LockFile(stale, path); err == nil {
		t.Error("a lock file that was replaced was taken")
	}
	for _, text := range []string{"", "junk", "-1"} {
		writeFile(t, path, text)
		if got := state.HolderOf(path); got != "another process" {
			t.Errorf("%q: found %q", text, got)
		}
	}
}
