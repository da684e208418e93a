package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

const imageConfig = `# made by evidence-snapshots
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
ceph: {lab: {config: LAB/ceph.conf, user: admin, keyring-file: LAB/keyring}}
volumes: {disk: {type: rbd, ceph: lab, image: rbd/disk}}
targets: {"` + target + `": {luns: {0: disk}}}
`

// ceph is a cluster of this host, with a server of one of its images.
type ceph struct {
	killing
	lab, dir string
	before   string // the newest snapshot of what the volume held before a rollback
	was      []byte // that
}

func newCeph(ctx context.Context, o options) (c *ceph, err error) {
	c = &ceph{lab: o.Lab}
	c.random, c.within = rand.New(rand.NewPCG(19, 8)), 300*time.Millisecond
	if c.dir, err = os.MkdirTemp("", "snapshots-ceph-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if _, err := command(o.Lab, "up", c.dir); err != nil {
		return c, err
	}
	if _, err := c.rbd("create", "--size", fmt.Sprintf("%dM", o.MiB), "rbd/disk"); err != nil {
		return c, err
	}
	c.server = &server{disk: &disk{}}
	if c.server.dir, err = os.MkdirTemp("", "snapshots-server-"); err != nil {
		return c, err
	}
	if c.Server, err = daemon.New(o.Tgtd, c.server.dir, strings.ReplaceAll(imageConfig, "LAB", c.dir)); err != nil {
		return c, err
	}
	c.loads = []*load{{ledger: newLedger(o.MiB * mib / blockSize), writers: 4}}
	if err = c.start(); err == nil {
		err = c.begin(ctx)
	}
	return c, err
}

// rbd is Ceph's own program.
func (c *ceph) rbd(args ...string) (string, error) {
	return command("rbd", append([]string{"--conf", filepath.Join(c.dir, "ceph.conf"), "--log-to-stderr=false"}, args...)...)
}

func (c *ceph) close() (err error) {
	if c.server != nil {
		if c.Server != nil && c.Process != nil {
			_ = c.Process.Kill() // it may have ended
			_, _ = c.Process.Wait()
		}
		err = os.RemoveAll(c.server.dir)
	}
	_, down := command(c.lab, "down", c.dir)
	return errors.Join(err, down)
}

// imageRollbacks has an image rolled back, to a snapshot or to what it held before the last
// rollback, and the server killed amid some of it.
func imageRollbacks(ctx context.Context, o options) (r result, err error) {
	if _, err := exec.LookPath("ceph-osd"); err != nil {
		return r, fmt.Errorf("found no cluster's programs, which scripts/setup/packages.sh ceph installs: %w", err)
	}
	c, err := newCeph(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	rounds, done := max(o.Snapshots/10, 4), 0
	for i := range rounds {
		back, err := c.round(ctx, i)
		if err != nil {
			return r, fmt.Errorf("rollback %d: %w\nthe server said\n%s", i, err, tail(c.Output.String()))
		}
		if back {
			done++
		}
		if i%5 == 4 {
			err = c.tidy(ctx)
		}
		if err != nil {
			return r, err
		}
	}
	wrong := "none"
	if len(c.wrong) > 0 {
		wrong = fmt.Sprintf("%d, the first: %s", len(c.wrong), c.wrong[0])
	}
	slices.Sort(c.held)
	r.How = fmt.Sprintf("A server with an image of %d MiB in a Ceph cluster of this host, one OSD in memory, and 4 writers. They stop, a snapshot is made, they go on for a while and stop; then the image is rolled back, forced, to that snapshot or, each 3rd time, to what it held before the last rollback. Each 2nd time the server is killed (`kill -9`) at any time from the request to a quarter after the end of one like it, and started again. The whole volume is read by an initiator before and after: it has to be the snapshot, or, of a server that was killed, what it was. If it is the snapshot, what it held is a snapshot; no image is left half-made, or has two names. After each 5th the image is flattened while it is written to, and all snapshots are deleted: no other image is left then.", o.MiB)
	r.Facts = []notes.Fact{
		notes.Found("rollbacks asked for; kills amid them; those that came to pass", fmt.Sprintf("%d; %d; %d", rounds, c.kills, done), done >= rounds-c.kills),
		notes.Found("contents, snapshots, names of images and reads that were wrong", wrong, len(c.wrong) == 0),
	}
	if len(c.held) > 0 {
		r.Facts = append(r.Facts, notes.Found("commands held for a rollback: median, longest", fmt.Sprintf("%v, %v", c.held[len(c.held)/2], c.held[len(c.held)-1]), true))
	}
	return r, nil
}

// round is one rollback.
func (c *ceph) round(ctx context.Context, i int) (back bool, err error) {
	time.Sleep(20 * time.Millisecond)
	c.end()
	to, want := fmt.Sprintf("r%03d", i), []byte(nil)
	if want, err = c.content(ctx, 0); err != nil {
		return false, err
	}
	if _, err := c.api.Snapshot(ctx, "disk", control.SnapshotRequest{Name: to}); err != nil {
		return false, err
	}
	if err := c.begin(ctx); err != nil {
		return false, err
	}
	time.Sleep(20 * time.Millisecond)
	c.end()
	if i%3 == 2 && c.before != "" {
		to, want = c.before, c.was
	}
	was, err := c.content(ctx, 0)
	if err != nil {
		return false, err
	}
	if back, err = c.rollBackTo(ctx, to, i%2 == 1, want, was); err != nil {
		return back, err
	}
	now := map[bool][]byte{true: want, false: was}[back]
	if err := c.loads[0].again(now); err != nil {
		return back, err
	}
	return back, errors.Join(c.names(), c.begin(ctx))
}

func (c *ceph) rollBackTo(ctx context.Context, to string, kill bool, want, was []byte) (back bool, err error) {
	type answer struct {
		control.RolledBack
		error
	}
	ended, began := make(chan answer, 1), time.Now()
	go func() {
		out, err := c.api.RollBack(ctx, "disk", to, control.SnapshotRollback{Force: true})
		ended <- answer{out, err}
	}()
	if kill {
		time.Sleep(time.Duration(c.random.Int64N(int64(c.within))))
		if err := c.kill(); err != nil {
			return false, err
		}
		c.kills++
	}
	a := <-ended
	switch {
	case kill:
		if err := c.start(); err != nil {
			return false, err
		}
	case a.error != nil:
		return false, a.error
	default:
		c.within = time.Since(began) * 5 / 4
		held, err := time.ParseDuration(a.Held)
		if err != nil {
			return false, err
		}
		c.held = append(c.held, held)
	}
	now, err := c.content(ctx, 0)
	if err != nil {
		return false, err
	}
	back = bytes.Equal(now, want)
	if !back && (a.error == nil || !bytes.Equal(now, was)) {
		c.wrong = append(c.wrong, fmt.Sprintf("the volume after a rollback to %s, answered with %v, is neither that nor as before", to, a.error))
	}
	return back, c.kept(ctx, back, was)
}

// kept holds against what there is whether what the volume held before is a snapshot.
func (c *ceph) kept(ctx context.Context, back bool, was []byte) error {
	all, err := c.api.Snapshots(ctx, "disk")
	if err != nil {
		return err
	}
	newest := ""
	for _, s := range all {
		if strings.HasPrefix(s.Name, "before-") {
			newest = max(newest, s.Name)
		}
	}
	if back != (newest > c.before) { // names begin with the time
		c.wrong = append(c.wrong, fmt.Sprintf("rolled back: %t, and the newest snapshot of before is %q after %q", back, newest, c.before))
	}
	if back {
		c.before, c.was = newest, was
	}
	return nil
}

// tidy has the image depend on no other one, while it is written to, and deletes all snapshots:
// no image but the volume's is left then.
func (c *ceph) tidy(ctx context.Context) error {
	if _, err := c.rbd("flatten", "--no-progress", "rbd/disk"); err != nil {
		return err
	}
	all, err := c.api.Snapshots(ctx, "disk")
	if err != nil {
		return err
	}
	for _, s := range all {
		if _, err := c.api.DeleteSnapshot(ctx, "disk", s.Name); err != nil {
			return err
		}
	}
	c.before = ""
	left, err := c.rbd("ls", "rbd")
	if left != "disk" {
		c.wrong = append(c.wrong, fmt.Sprintf("found images %q once no snapshot was left", left))
	}
	return err
}

// names holds the names of images against what they are listed by.
func (c *ceph) names() error {
	listed, err := c.rbd("ls", "rbd")
	if err != nil {
		return err
	}
	objects, err := command("rados", "--conf", filepath.Join(c.dir, "ceph.conf"), "--log-to-stderr=false", "-p", "rbd", "ls")
	if err != nil {
		return err
	}
	var found []string
	for name := range strings.Lines(objects) {
		if image, ok := strings.CutPrefix(strings.TrimSpace(name), "rbd_id."); ok {
			found = append(found, image)
		}
	}
	want := strings.Fields(listed)
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) || slices.Contains(want, "disk.lunar-new") || !slices.Contains(want, "disk") {
		c.wrong = append(c.wrong, fmt.Sprintf("found names %v of images, listed as %v", found, want))
	}
	return nil
}
