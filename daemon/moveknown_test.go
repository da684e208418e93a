package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// written writes to the disk of a mover, 64 KiB at each MiB of some.
func (m *mover) written(g uint64, at ...uint32) {
	m.Helper()
	c := dial(m.T, m.child.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(m.T, c, 0)
	for _, mib := range at {
		transfer(m.T, c, cdb10(0x2a, mib*2048), 0, generation(g), 0)
	}
	c.Close()
}

// TestMoveIncremental: only what was written since the last incremental move is read and
// sent, also after an end in order. After a kill, or when somebody else has written to the
// file, all is read; of what the receiver has, none is sent then either.
func TestMoveIncremental(t *testing.T) {
	from, to := newMover(t, fmt.Sprintf(movesConfig, "")), newEndpoint(t, "")
	key, disk := filepath.Join(from.dir, "key"), filepath.Join(from.dir, "disk.img")
	from.start()
	from.written(1, 0, 3, 5, 6, 7, 30, 39)
	moved := func(what, read, sent string, flags ...string) {
		t.Helper()
		job := to.receiving(key, "--standby")
		out, status := from.lunar(append([]string{"volume", "send", "disk", to.at, "--key-file", key}, flags...)...)
		if status != cli.ExitOK || !strings.Contains(out, fmt.Sprintf("read %s, sent %s,", read, sent)) {
			t.Errorf("%s: found %d, %q, expected %s blocks read and %s sent", what, status, out, read, sent)
		}
		to.waited(job, "done")
		a, err := os.ReadFile(disk)
		if b := to.bytes("copy.img.receiving"); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("%s: what was received is not what was sent (%v)", what, err)
		}
	}
	restart := func(how syscall.Signal) {
		t.Helper()
		if err := from.child.end(t, how); err != nil && how == syscall.SIGTERM {
			t.Fatalf("%v\n%s", err, from.child.log)
		}
		from.start()
	}
	const incremental = "--incremental"
	moved("the first", "7", "7", incremental)
	moved("nothing written", "0", "0", incremental)
	from.written(2, 3, 20)
	moved("two blocks written", "2", "2", incremental)
	from.written(3, 6)
	restart(syscall.SIGTERM)
	from.written(4, 7)
	moved("after an end in order", "2", "2", incremental)
	from.written(5, 30)
	restart(syscall.SIGKILL)
	moved("after a kill", "8", "1", incremental)
	moved("after that", "0", "0", incremental)
	if err := from.child.end(t, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("somebody else"), 5<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	from.start()
	moved("after somebody else wrote", "8", "1", incremental)
	moved("without the flag", "8", "0")
	if _, err := os.Stat(filepath.Join(from.dir, knownDir, "disk")); err == nil {
		t.Error("what is known is kept, though nobody wants it any more")
	}
}

// newIncremental is a volume with some blocks, and what sends it incrementally.
func newIncremental(t *testing.T) (from *mover, to *endpoint, key string, send func() (string, int)) {
	t.Helper()
	from, to = newMover(t, fmt.Sprintf(movesConfig, "")), newEndpoint(t, "")
	key = filepath.Join(from.dir, "key")
	from.start()
	from.written(1, 0, 3, 5)
	return from, to, key, func() (string, int) {
		return from.lunar("volume", "send", "disk", to.at, "--key-file", key, "--incremental")
	}
}

// TestMoveIncrementalRereads: what is not as it was at the receiver is read again there, and
// what was altered is sent.
func TestMoveIncrementalRereads(t *testing.T) {
	from, to, key, send := newIncremental(t)
	job := to.receiving(key, "--standby")
	if out, status := send(); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	f, err := os.OpenFile(filepath.Join(to.dir, "copy.img.receiving"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("altered"), 3<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	job = to.receiving(key)
	if out, status := send(); status == cli.ExitOK || !strings.Contains(out, "checksum") {
		t.Errorf("found %d, %q, expected that the checksums differ", status, out)
	}
	to.awaits(job)
	if out, status := send(); status != cli.ExitOK || !strings.Contains(out, "sent 1,") {
		t.Errorf("found %d, %q, expected that the block is sent", status, out)
	}
	to.waited(job, "done")
	if a, err := os.ReadFile(filepath.Join(from.dir, "disk.img")); err != nil || !bytes.Equal(a, to.bytes("copy.img")) {
		t.Errorf("what was received is not what was sent (%v)", err)
	}
}

// TestMoveIncrementalForm: what was verified as cipher text is not taken for verified by a receiver
// that is to store it in clear.
func TestMoveIncrementalForm(t *testing.T) {
	_, to, key, send := newIncremental(t)
	sealed := filepath.Join(to.dir, "volumes.key")
	if err := os.WriteFile(sealed, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	job := to.receiving(key, "--standby", "encryption={key-file: "+sealed+"}")
	if out, status := send(); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	to.receiving(key)
	if out, status := send(); status == cli.ExitOK {
		t.Errorf("found %q: the copy is served as cipher text", out)
	}
}

// TestMoveIncrementalWithoutNotes: where notes cannot be made, as on a full disk, all is sent, and noted
// the next time that it can be.
func TestMoveIncrementalWithoutNotes(t *testing.T) {
	from, to, key, send := newIncremental(t)
	notes := filepath.Join(from.dir, knownDir)
	if err := os.WriteFile(notes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"read 3, sent 3,", "read 3, sent 0,", "read 0, sent 0,"} {
		job := to.receiving(key, "--standby")
		if out, status := send(); status != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("found %d, %q, expected %q", status, out, want)
		}
		to.waited(job, "done")
		_ = os.Remove(notes) // which fails where there are notes
	}
}
