package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// movesConfig is a server of one volume of 40 MiB and 4 KiB.
const movesConfig = `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {disk: {type: file, path: disk.img, size: 40964KiB%s}}
targets: {"iqn.2026-11.test:t": {luns: {0: disk}}}
`

// endpoint is a server of moves.
type endpoint struct {
	*objects
	at string // where it receives
}

func newEndpoint(t *testing.T, keys string) *endpoint {
	t.Helper()
	return &endpoint{serveObjects(t, fmt.Sprintf(movesConfig, keys)), freePort(t)}
}

func (e *endpoint) lunar(args ...string) (string, int) {
	e.Helper()
	var out, errs bytes.Buffer
	status := run(e.Context(), append(args, "--state-dir", e.dir), cli.Console{Out: &out, Err: &errs})
	return out.String() + errs.String(), status
}

// receiving begins to receive, and returns the job.
func (e *endpoint) receiving(key string, args ...string) string {
	e.Helper()
	out, status := e.lunar(append([]string{"volume", "receive", "copy", "copy.img", "--key-file", key, "--listen", e.at, "--async"}, args...)...)
	i := strings.Index(out, "Job ")
	if status != cli.ExitOK || i < 0 {
		e.Fatalf("found %d, %q", status, out)
	}
	id := strings.Fields(out[i:])[1]
	eventually.Holds(e.T, "it listens", func() bool {
		j, err := e.api.Job(e.Context(), id)
		if err == nil && j.Ended != nil {
			e.Fatalf("found %s: %s", j.State, j.Result)
		}
		return err == nil && j.Progress != nil && strings.Contains(j.Progress.What, "waits for the other server")
	})
	return id
}

func (e *endpoint) waited(id string, want string) string {
	e.Helper()
	out, _ := e.lunar("jobs", id, "--wait")
	if !strings.Contains(out, "job "+id+": "+want) {
		e.Errorf("found %s, expected %s", out, want)
	}
	return out
}

// filled writes some of the disk by an initiator.
func (e *endpoint) filled() {
	e.Helper()
	c := dial(e.T, e.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(e.T, c, 0)
	for i := range 40 {
		if i%3 != 2 {
			transfer(e.T, c, cdb10(0x2a, uint32(i)*128), 0, generation(uint64(i+1)), 0)
		}
	}
	c.Close()
}

func (e *endpoint) bytes(name string) []byte {
	e.Helper()
	b, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.Fatal(err)
	}
	return b
}

// TestMoveVolume: a volume that is written meanwhile goes to another server, which serves it
// only then, with the same size, geometry and bytes; a repeated move sends what has changed.
func TestMoveVolume(t *testing.T) {
	from, to := newEndpoint(t, ", block-size: 4096"), newEndpoint(t, "")
	key := filepath.Join(from.dir, "key")
	c := dial(t, from.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	write := func(lba int, g uint64) error {
		r, err := c.Command(cdb10(0x2a, uint32(lba)), 0, generation(g)[:16*4096], 0)
		if err == nil && r.Status != 0 {
			err = fmt.Errorf("status %v", r.Status)
		}
		return err
	}
	for i := range 30 {
		if err := write(i*256, uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() {
		for g := uint64(1); !stop.Load(); g++ {
			if err := write(int(g%16)*16, g); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	job := to.receiving(key, "--standby")
	if out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key); status != cli.ExitOK || !strings.Contains(out, "the other server has the same") {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	if _, err := os.Stat(filepath.Join(to.dir, "copy.img")); err == nil || len(to.status().Volumes) != 1 {
		t.Error("a volume on standby has its name already")
	}
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	job = to.receiving(key, "product=Moved")
	out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key)
	if status != cli.ExitOK || !strings.Contains(out, "sent 1,") && !strings.Contains(out, "sent 0,") {
		t.Fatalf("found %d, %q, expected at most the block that was written since", status, out)
	}
	to.waited(job, "done")
	if !bytes.Equal(from.bytes("disk.img"), to.bytes("copy.img")) {
		t.Error("what was received is not what was sent")
	}
	if text := to.text(); !strings.Contains(text, "block-size: 4096") || !strings.Contains(text, "product: Moved") {
		t.Errorf("found\n%s", text)
	}
	for _, left := range []string{".receiving", ".receiving.journal"} {
		if _, err := os.Stat(filepath.Join(to.dir, "copy.img"+left)); err == nil {
			t.Errorf("copy.img%s is still there", left)
		}
	}
	sum, status := from.lunar("volume", "checksum", "disk")
	if status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, sum)
	}
	if out, status := to.lunar("volume", "checksum", "copy", "--expect", strings.TrimSpace(sum)); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	if out, status := to.lunar("volume", "checksum", "disk", "--expect", strings.TrimSpace(sum)); status == cli.ExitOK || !strings.Contains(out, "expected "+strings.TrimSpace(sum)) {
		t.Errorf("found %d, %q", status, out)
	}
	if secret := strings.TrimSpace(string(from.bytes("key"))); strings.Contains(from.log.String()+to.log.String(), secret) {
		t.Error("the log has the one-time key")
	}
}

// status is the server's status.
func (e *endpoint) status() control.Status {
	e.Helper()
	s, err := e.api.Status(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	return s
}

// TestMoveEncrypts: a volume becomes an encrypted one where it is received.
func TestMoveEncrypts(t *testing.T) {
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	from.filled()
	key := filepath.Join(from.dir, "key")
	writeFile(t, filepath.Join(to.dir, "volumes.key"), strings.Repeat("0123456789abcdef", 4))
	if err := os.Chmod(filepath.Join(to.dir, "volumes.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := to.receiving(key, "encryption={key-file: "+filepath.Join(to.dir, "volumes.key")+"}")
	if out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	sum, _ := from.lunar("volume", "checksum", "disk")
	if out, status := to.lunar("volume", "checksum", "copy", "--expect", strings.TrimSpace(sum)); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	if bytes.Contains(to.bytes("copy.img"), generation(1)[:64]) {
		t.Error("the file has the volume's data in clear")
	}
}

// TestMoveEnds: a move ends when it is cancelled, when its volume is removed, and when the
// server stops; what was received is there for the next one.
func TestMoveEnds(t *testing.T) {
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	from.filled()
	key := filepath.Join(from.dir, "key")
	job := to.receiving(key)
	send := func() string {
		t.Helper()
		out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key, "--rate", "2", "--async")
		if status != cli.ExitOK {
			t.Fatalf("found %d, %q", status, out)
		}
		id := strings.Fields(out)[1]
		eventually.Holds(t, "it sends", func() bool {
			j, err := from.api.Job(t.Context(), id)
			return err == nil && j.Progress != nil && strings.Contains(j.Progress.What, "sent") && *j.Progress.Percent > 1
		})
		return id
	}
	id := send()
	if out, status := from.lunar("jobs", id, "--cancel"); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	if out := from.waited(id, "cancelled"); !strings.Contains(out, "it was cancelled") {
		t.Errorf("found %q", out)
	}
	id = send()
	if out, status := from.lunar("volume", "checksum", "disk"); status == cli.ExitOK || !strings.Contains(out, "already") {
		t.Errorf("found %d, %q, expected that it is refused", status, out)
	}
	if out, status := from.lunar("target", "delete", "iqn.2026-11.test:t", "--yes"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	if out, status := from.lunar("volume", "delete", "disk", "--yes"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	from.waited(id, "failed")
	to.awaits(job)
	if status := to.stop(); status != cli.ExitOK {
		t.Errorf("found status %d\n%s", status, to.log)
	}
	if _, err := os.Stat(filepath.Join(to.dir, "copy.img.receiving.journal")); err != nil {
		t.Error(err)
	}
	if status := from.stop(); status != cli.ExitOK {
		t.Errorf("found status %d\n%s", status, from.log)
	}
}

// awaits waits until a reception waits again, or has ended.
func (e *endpoint) awaits(id string) {
	e.Helper()
	eventually.Holds(e.T, "it waits for the next sender", func() bool {
		j, err := e.api.Job(e.Context(), id)
		return err == nil && (j.Ended != nil || j.Progress != nil && strings.Contains(j.Progress.What, "the last connection ended"))
	})
}

// TestMoveRefused: what cannot be sent or received is refused with the reason, and nothing is
// there afterwards that was not before.
func TestMoveRefused(t *testing.T) {
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	key, other := filepath.Join(from.dir, "key"), filepath.Join(from.dir, "other")
	job := to.receiving(key)
	writeFile(t, other, strings.Repeat("A", 43))
	writeFile(t, filepath.Join(to.dir, "there.img"), "somebody's")
	if err := os.Chmod(other, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   *endpoint
		why  string
		args []string
	}{
		{from, "another one-time key", []string{"send", "disk", to.at, "--key-file", other}},
		{from, "waits for it", []string{"send", "disk", freePort(t), "--key-file", key}},
		{from, "no such volume", []string{"send", "tape", to.at, "--key-file", key}},
		{to, "there is a volume of this name", []string{"receive", "disk", "new.img", "--key-file", key, "--listen", "127.0.0.1:0"}},
		{to, "expected a file that there is not", []string{"receive", "new", "there.img", "--key-file", key, "--listen", "127.0.0.1:0"}},
		{to, "no such file or directory", []string{"receive", "new", "nowhere/new.img", "--key-file", key, "--listen", "127.0.0.1:0"}},
		{to, "expected a directory", []string{"receive", "new", "there.img/new.img", "--key-file", key, "--listen", "127.0.0.1:0"}},
		{to, "address already in use", []string{"receive", "new", "new.img", "--key-file", key, "--listen", to.at}},
		{to, "already", []string{"receive", "copy", "new.img", "--key-file", key, "--listen", "127.0.0.1:0"}},
	} {
		if out, status := c.at.lunar(append([]string{"volume"}, c.args...)...); status == cli.ExitOK || !strings.Contains(out, c.why) {
			t.Errorf("%v: found %d, %q, expected %q", c.args, status, out, c.why)
		}
	}
	if out, status := from.lunar("volume", "freeze", "disk"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	if out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key); status == cli.ExitOK || !strings.Contains(out, "it is frozen") {
		t.Errorf("found %d, %q", status, out)
	}
	if out, status := from.lunar("volume", "thaw", "disk"); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	if out, status := to.lunar("jobs", job, "--cancel"); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	to.waited(job, "cancelled")
	for _, name := range []string{"new.img", "copy.img"} {
		for _, suffix := range []string{"", ".receiving", ".receiving.journal"} {
			if _, err := os.Stat(filepath.Join(to.dir, name+suffix)); err == nil {
				t.Errorf("%s is there", name+suffix)
			}
		}
	}
	if string(to.bytes("there.img")) != "somebody's" {
		t.Error("another file was altered")
	}
}

// TestMoveNamed: a volume that has its name, of a server that was killed before it served it,
// is served by the same command; a file that is another one by now is not.
func TestMoveNamed(t *testing.T) {
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	from.filled()
	key, copied := filepath.Join(from.dir, "key"), filepath.Join(to.dir, "copy.img")
	job := to.receiving(key, "--standby")
	if out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	if err := os.Rename(copied+".receiving", copied); err != nil {
		t.Fatal(err)
	}
	receive := []string{"volume", "receive", "copy", "copy.img", "--key-file", key, "--listen", to.at}
	stat, err := os.Stat(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(copied, stat.ModTime(), stat.ModTime().Add(1)); err != nil {
		t.Fatal(err)
	}
	if out, status := to.lunar(receive...); status == cli.ExitOK || !strings.Contains(out, "expected a file that there is not") {
		t.Errorf("found %d, %q, expected that a file that was written since is refused", status, out)
	}
	if err := os.Chtimes(copied, stat.ModTime(), stat.ModTime()); err != nil {
		t.Fatal(err)
	}
	if out, status := to.lunar(receive...); status != cli.ExitOK || !strings.Contains(out, "It is served as copy") {
		t.Errorf("found %d, %q", status, out)
	}
	if !strings.Contains(to.text(), "copy:") || !bytes.Equal(from.bytes("disk.img"), to.bytes("copy.img")) {
		t.Errorf("found\n%s", to.text())
	}
	if _, err := os.Stat(copied + ".receiving.journal"); err == nil {
		t.Error("the journal is still there")
	}
}
