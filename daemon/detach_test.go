package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// detaching is a server with a volume that writes back, whose file has no space for
// what is dirty.
type detaching struct {
	*testing.T
	dir, small    string
	with, without string // configurations
	portal        string
	log           *eventually.Output
	serving       *serving
}

func newDetaching(t *testing.T, cache string) *detaching {
	d := &detaching{T: t, dir: t.TempDir(), small: t.TempDir()}
	if err := unix.Mount("tmpfs", d.small, "tmpfs", 0, "size=4M"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.small, unix.MNT_DETACH) })
	const text = `
server: {threads: 2, buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, %s}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {%s other: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {%s 1: other}}}
`
	back := fmt.Sprintf("back: {type: file, path: %s/back, size: 64MiB, write: back, cache: {flush-age: 1h}},", d.small)
	d.with, d.without = filepath.Join(d.dir, "with.yaml"), filepath.Join(d.dir, "without.yaml")
	writeFile(t, d.with, fmt.Sprintf(text, cache, back, "0: back,"))
	writeFile(t, d.without, fmt.Sprintf(text, cache, "", ""))
	s := serve(t, "-c", d.with, "--state-dir", d.dir)
	d.portal, d.log, d.serving = s.portal, s.log, s
	return d
}

func (d *detaching) tgtd(args ...string) (string, int) {
	var out, log eventually.Output
	status := run(d.Context(), append(args, "--state-dir", d.dir), cli.Console{Out: &out, Err: &log})
	return out.String() + log.String(), status
}

// fill has data acknowledged for which there is no space.
func (d *detaching) fill(round int) {
	d.Helper()
	writeFile(d.T, filepath.Join(d.small, "filler"), "")
	filler, err := os.OpenFile(filepath.Join(d.small, "filler"), os.O_WRONLY, 0)
	if err != nil {
		d.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	filler.Close()
	c := dial(d.T, d.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(d.T, c, 0)
	for i := range 8 {
		transfer(d.T, c, cdb10(0x28, lbaOf(100+i)), 0, nil, 64<<10) // blocks that stay clean
		transfer(d.T, c, cdb10(0x2a, lbaOf(i)), 0, pattern(i, round), 0)
	}
	logout(d.T, c)
}

// stick fills the volume and removes it, so that it cannot be closed. The result waits for
// that to be over.
func (d *detaching) stick(round int) (wait func()) {
	d.Helper()
	d.fill(round)
	applied := make(chan string, 1)
	go func() {
		out, status := d.tgtd("apply", "--yes", d.without)
		applied <- fmt.Sprint(status, out)
	}()
	return func() {
		if out := <-applied; !strings.HasPrefix(out, "0") || strings.Contains(out, "still being closed") {
			d.Errorf("found %q", out)
		}
	}
}

// detach gives the volume up as soon as it has been removed.
func (d *detaching) detach(want string, args ...string) {
	d.Helper()
	var out string
	eventually.Passes(d, "the volume is given up", func() string {
		var status int
		if out, status = d.tgtd(append([]string{"detach", "back"}, args...)...); status == cli.ExitOK {
			return ""
		}
		return out
	}, func(refusal string) bool { return refusal == "" })
	if !strings.Contains(out, want) {
		d.Fatalf("found %q, expected %q", out, want)
	}
}

// refuses expects that a command fails and says why.
func (d *detaching) refuses(want string, args ...string) {
	d.Helper()
	if out, status := d.tgtd(args...); status == cli.ExitOK || !strings.Contains(out, want) {
		d.Errorf("found %d, %q, expected a refusal with %q", status, out, want)
	}
}

// restore makes room and configures the volume again, which has the data of the round.
func (d *detaching) restore(round int) {
	d.Helper()
	if err := os.Remove(filepath.Join(d.small, "filler")); err != nil {
		d.Fatal(err)
	}
	if out, status := d.tgtd("apply", d.with); status != cli.ExitOK {
		d.Fatalf("found %q", out)
	}
	c := dial(d.T, d.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(d.T, c, 0)
	for i := range 8 {
		want := make([]byte, 64<<10)
		if round > 0 {
			want = pattern(i, round)
		}
		if got := transfer(d.T, c, cdb10(0x28, lbaOf(i)), 0, nil, 64<<10); !bytes.Equal(got, want) {
			d.Errorf("extent %d is not that of round %d", i, round)
		}
	}
	logout(d.T, c)
}

// TestDetach: a volume whose file does not take what it has acknowledged can be given up
// while the server runs. Its data stay in the cache until it is configured again, or are
// lost if that is asked for.
func TestDetach(t *testing.T) {
	d := newDetaching(t, "segment: "+memoryDir(t)+"/lunar")
	d.refuses("found it in the configuration", "detach", "back")
	d.refuses("found no volume of that name", "detach", "nothing")

	wait := d.stick(1)
	d.detach("The cache keeps 512KiB that " + d.small + "/back does not have")
	wait()
	if out, _ := d.tgtd("status"); !strings.Contains(out, "are kept for volume back") {
		t.Errorf("found nothing of it in\n%s", out)
	}
	d.restore(1)
	if out, _ := d.tgtd("status"); strings.Contains(out, "are kept for volume back") {
		t.Errorf("found it in\n%s", out)
	}

	if err := os.Remove(filepath.Join(d.small, "back")); err != nil {
		t.Fatal(err)
	}
	wait = d.stick(2)
	d.detach("512KiB that were acknowledged to initiators are lost", "--discard")
	wait()
	d.refuses("keeps nothing", "detach", "back", "--discard")
	d.restore(0)

	wait = d.stick(3)
	d.detach("keeps 512KiB")
	wait()
	d.refuses("512KiB that "+d.small+"/back does not have, which --discard would lose", "detach", "back")
	d.detach("512KiB that were acknowledged to initiators are lost", "--discard")
	d.refuses("keeps nothing", "detach", "back", "--discard")
	d.restore(0)
}

// complaints are the messages of warnings and errors, but for refusals of commands; and for what is
// said of a volume whose disk has been stuck for long, as it is here on a busy machine.
func (d *detaching) complaints() (out []string) {
	for line := range strings.Lines(d.log.String()) {
		if m := complaint.FindStringSubmatch(line); m != nil && m[1] != "health of a volume" {
			out = append(out, m[1])
		}
	}
	return out
}

var complaint = regexp.MustCompile(`level=(?:WARN|ERROR) msg="([^"]*)"`)

// TestDetachComplaints: the log warns of what cannot be closed and of what is given up,
// and of nothing when such a volume is configured again, or at the next start.
func TestDetachComplaints(t *testing.T) {
	const stuck = "a volume that was removed cannot be closed, and is tried again; lunar detach gives it up"
	d := newDetaching(t, "segment: "+memoryDir(t)+"/lunar")
	for round, test := range []struct {
		args []string
		data int // the round whose data the volume has then
	}{{nil, 1}, {[]string{"--discard"}, 0}, {nil, 3}} {
		before := len(d.complaints())
		wait := d.stick(round + 1)
		d.detach("512KiB that", test.args...)
		wait()
		if got := slices.Compact(d.complaints()[before:]); !slices.Equal(got, []string{stuck, "volume given up"}) {
			t.Errorf("round %d: found %q when it was given up", round, got)
		}
		before = len(d.complaints())
		d.restore(test.data)
		if got := d.complaints()[before:]; len(got) > 0 {
			t.Errorf("round %d: found %q when it was configured again", round, got)
		}
	}
	d.serving.stop()
	s := serve(t, "-c", d.with, "--state-dir", d.dir)
	if d.log = s.log; len(d.complaints()) > 0 {
		t.Errorf("found %q at the next start", d.complaints())
	}
}
