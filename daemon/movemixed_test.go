package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestMoveMixedUp: a volume that could not be served, because somebody had made one of its name
// meanwhile, is served by the same command, and not as clear text by one without its encryption.
// Nobody else receives to its path.
func TestMoveMixedUp(t *testing.T) {
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	from.filled()
	key, secret := filepath.Join(from.dir, "key"), filepath.Join(to.dir, "volumes.key")
	writeFile(t, secret, strings.Repeat("0123456789abcdef", 4))
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := "encryption={key-file: " + secret + "}"
	job := to.receiving(key, sealed)
	again := []string{"volume", "receive", "copy", "copy.img", "--key-file", key, "--listen", "127.0.0.1:0"}
	if out, status := to.lunar("volume", "receive", "other", to.dir+"//copy.img", "--key-file", key, "--listen", "127.0.0.1:0", "--async"); status != cli.ExitOK || !to.failsWith(out, "is being received there") {
		t.Errorf("a second one to its path: found %d, %q", status, out)
	}
	out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key, "--rate", "10", "--async")
	if status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	eventually.Holds(t, "it sends", func() bool {
		b, err := os.ReadFile(filepath.Join(to.dir, "copy.img.receiving.journal"))
		return err == nil && len(b) > 4096
	})
	if out, status := to.lunar("volume", "create", "copy", "type=ram", "size=1MiB"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	if out := to.waited(job, "failed"); !strings.Contains(out, "is not served") {
		t.Errorf("found %q", out)
	}
	if out, status := to.lunar("volume", "delete", "copy", "--yes"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	if out, status := to.lunar(again...); status == cli.ExitOK || !strings.Contains(out, "with encryption") {
		t.Errorf("without its encryption: found %d, %q", status, out)
	}
	if out, status := to.lunar(append(again, sealed)...); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	sum, _ := from.lunar("volume", "checksum", "disk")
	if out, status := to.lunar("volume", "checksum", "copy", "--expect", strings.TrimSpace(sum)); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
}

// failsWith reports whether a job fails for a reason, and does not wait for a sender.
func (e *endpoint) failsWith(started, why string) bool {
	e.Helper()
	_, rest, _ := strings.Cut(started, "Job ")
	id := strings.Fields(rest)[0]
	failed := false
	eventually.Holds(e.T, "it waits, or has failed", func() bool {
		j, err := e.api.Job(e.Context(), id)
		failed = err == nil && j.Ended != nil && strings.Contains(string(j.Result), why)
		return err == nil && (j.Ended != nil || j.Progress != nil)
	})
	return failed
}
