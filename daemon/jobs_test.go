package daemon

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestJobs: an apply that waits for a volume that cannot be closed is a job that says so,
// also on a terminal; changes behind it wait, and can be cancelled; all end once the
// volume is given up.
func TestJobs(t *testing.T) {
	d := newDetaching(t, "dirty-limit: 50%")
	d.fill(1)
	api, err := control.Dial(filepath.Join(d.dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	out, status := d.tgtd("apply", "--yes", "--async", d.without)
	if status != cli.ExitOK || !strings.HasPrefix(out, "Job ") {
		t.Fatalf("found %d, %q", status, out)
	}
	first := strings.Fields(out)[1]
	job := func(id string) control.Job {
		t.Helper()
		j, err := api.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	const closing = "being closed, once their sessions have ended and their data are written: back"
	eventually.Holds(t, "the job says what it waits for", func() bool { j := job(first); return j.Progress != nil && j.Progress.What == closing })
	var behind [2]control.Job
	for i, level := range []string{"warn", "debug"} {
		edit := control.Edit{Path: []string{"log"}, Set: control.Object{"level": level}}
		if behind[i], err = api.StartChange(t.Context(), control.Changes{Edits: []control.Edit{edit}, Permissions: control.Permissions{Keep: control.KeepRunning}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "both wait", func() bool {
		return job(behind[0].ID).State == control.JobWaiting && job(behind[1].ID).State == control.JobWaiting
	})
	if out, status := d.tgtd("jobs", "--columns", "job,state"); status != cli.ExitOK || strings.Count(out, "waiting") != 2 || strings.Count(out, "running") != 1 {
		t.Errorf("found %d, %q", status, out)
	}
	if out, status := d.tgtd("jobs", behind[1].ID, "--cancel"); status != cli.ExitOK || !strings.Contains(out, "cancelled") {
		t.Errorf("found %d, %q", status, out)
	}
	d.refuses("it has begun", "jobs", first, "--cancel")
	looked := d.look(closing, "jobs", first, "--wait")
	d.detach("closed")
	looked()
	for id, state := range map[string]string{first: control.JobDone, behind[0].ID: control.JobDone, behind[1].ID: control.JobCancelled} {
		if j, err := api.Await(t.Context(), id, func(*control.Job) {}); err != nil || j.State != state {
			t.Errorf("found %+v, %v, expected %s", j, err, state)
		}
	}
	d.refuses("cancelled", "jobs", behind[1].ID, "--wait")
	if config, err := api.Running(t.Context()); err != nil || !strings.Contains(config, "level: warn") {
		t.Errorf("found %v, %s", err, config)
	}
}

// TestDetachAndFreezeAsJobs: both tell what they wait for, and a freeze that waits for a
// change can be cancelled.
func TestDetachAndFreezeAsJobs(t *testing.T) {
	d := newDetaching(t, "dirty-limit: 50%")
	api, err := control.Dial(filepath.Join(d.dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	state := func(id string) string {
		j, err := api.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return j.State
	}
	f, err := api.StartFreeze(t.Context(), "other", control.Freeze{Deadline: "1m"})
	if err != nil {
		t.Fatal(err)
	}
	var frozen control.Frozen
	if f, err = api.Await(t.Context(), f.ID, func(*control.Job) {}); err != nil || f.Into(&frozen) != nil || len(frozen.Volumes) != 1 {
		t.Fatalf("found %+v, %v", f, err)
	}
	if out, status := d.tgtd("volume", "thaw", "other"); status != cli.ExitOK {
		t.Fatalf("found %s", out)
	}
	var lines []string
	for _, what := range []string{"volumes frozen", "volumes thawed"} {
		if err := api.Events(t.Context(), []string{"freeze"}, "", false, func(e control.Event) error { lines = append(lines, e.Text); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(lines, what) {
			t.Errorf("found the events %q, expected %q", lines, what)
		}
	}
	waits := d.stick(1)
	eventually.Holds(t, "the volume is being closed", func() bool { s, err := api.Status(t.Context()); return err == nil && len(s.Closing) == 1 })
	behind, err := api.StartFreeze(t.Context(), "other", control.Freeze{})
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the freeze waits", func() bool { return state(behind.ID) == control.JobWaiting })
	if out, status := d.tgtd("jobs", behind.ID, "--cancel"); status != cli.ExitOK || !strings.Contains(out, control.JobCancelled) {
		t.Errorf("found %d, %q", status, out)
	}
	out, status := d.tgtd("detach", "back", "--async")
	if status != cli.ExitOK || !strings.HasPrefix(out, "Job ") {
		t.Fatalf("found %d, %q", status, out)
	}
	j, err := api.Await(t.Context(), strings.Fields(out)[1], func(*control.Job) {})
	var given control.Detached
	if err != nil || j.Into(&given) != nil || given.Kept == 0 {
		t.Errorf("found %+v, %v", j, err)
	}
	waits()
	if j, err := api.Await(t.Context(), behind.ID, func(*control.Job) {}); err != nil || j.State != control.JobCancelled {
		t.Errorf("found %+v, %v", j, err)
	}
}

// look runs a command on a terminal, and returns when it has shown some words there; the
// result waits for its end.
func (d *detaching) look(words string, args ...string) (wait func()) {
	d.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		d.Skip("needs /dev/ptmx: ", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		d.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		d.Fatal(err)
	}
	var out eventually.Output
	ended := make(chan int, 1)
	go func() {
		ended <- run(d.Context(), append(args, "--state-dir", d.dir), cli.Console{Out: &out, Err: terminal})
	}()
	shown := bufio.NewReader(master)
	for text := ""; !strings.Contains(text, words); {
		r, _, err := shown.ReadRune()
		if err != nil {
			d.Fatalf("found %q: %v", text, err)
		}
		text += string(r)
	}
	return func() {
		d.Helper()
		if status := <-ended; status != cli.ExitOK || !strings.Contains(out.String(), "done") {
			d.Errorf("found %d, %q", status, out.String())
		}
		terminal.Close()
		master.Close()
	}
}

// TestAwaitsDirty: how much of the dirty data is written is told as it is, also when more
// comes meanwhile.
func TestAwaitsDirty(t *testing.T) {
	for _, test := range []struct {
		most, left int64
		text       string
	}{
		{4 << 30, 1 << 30, "volumes.disk: 3GiB of 4GiB of dirty data written (75 %)"},
		{4 << 20, 4 << 20, "volumes.disk: 0B of 4MiB of dirty data written (0 %)"},
		{1 << 20, 2 << 20, "volumes.disk: 2MiB of dirty data are to be written"},
		{0, 0, ""},
	} {
		p := dirtyProgress(conf.Key("volumes", "disk"), test.most, test.left)
		if p.String() != test.text {
			t.Errorf("found %q, expected %q", p.String(), test.text)
		}
	}
}

// TestProgressGoesForward: what others write meanwhile takes no progress back, and what has
// no measure is told in words.
func TestProgressGoesForward(t *testing.T) {
	left := int64(100)
	how := progressOf("x", "something else", func() int64 { return left })
	last := -1
	for _, left = range []int64{100, 150, 90, 130, 40, 95, 39, 200, 0, 3} {
		p := how()
		if p.Percent == nil {
			if last > 0 || left <= 100 {
				t.Errorf("%d left: found %q without a percentage", left, p.What)
			}
			continue
		}
		if *p.Percent < last || *p.Percent > 100 {
			t.Errorf("%d left: found %d %% after %d %%", left, *p.Percent, last)
		}
		last = *p.Percent
	}
	if last != 100 {
		t.Errorf("found %d %% at the end", last)
	}
	left = 0
	if p := progressOf("x", "something else", func() int64 { return left })(); p.String() != "something else" {
		t.Errorf("found %q", p.String())
	}
}
