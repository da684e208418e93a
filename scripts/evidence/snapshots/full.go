package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/scripts/evidence/notes"
)

// full has the disk fill up below volumes with a snapshot while they are written to.
func full(ctx context.Context, o options) (r result, err error) {
	r.How = fmt.Sprintf("The volumes of %d MiB and the writers of the kills. A snapshot of both; then a file takes all that the file system has left while the writers go on, for whom a block that the snapshot has needs space. Writes that end with SPACE ALLOCATION FAILED are counted, and may be there or not. Further snapshots and a clone are asked for. The server is killed and started again, without space. Then the snapshots are deleted, and nothing else. In the end an initiator reads both volumes, which the ledger judges: nothing that was acknowledged is missing, no block is torn. The snapshot is compared with what it was, byte by byte.", o.MiB)
	for _, system := range []string{"xfs", "btrfs"} {
		if err := fullOn(ctx, o, system, &r); err != nil {
			return r, fmt.Errorf("%s: %w", system, err)
		}
	}
	return r, nil
}

// filled is a server whose disk is full.
type filled struct {
	*killing
	system string
	r      *result
	was    [][]byte      // the snapshots, by LUN
	pause  time.Duration // in which much is written
}

func fullOn(ctx context.Context, o options, system string, r *result) (err error) {
	k, err := newKilling(ctx, o, system, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	f := &filled{killing: k, system: system, r: r, pause: time.Second}
	if o.Untimed {
		f.pause /= 5
	}
	for _, step := range []func(context.Context) error{f.fill, f.ask, f.restart, f.free, f.compare} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w\nthe server said\n%s", err, tail(k.Output.String()))
		}
	}
	return nil
}

func (f *filled) found(name, value string, good bool) {
	f.r.Facts = append(f.r.Facts, notes.Found(f.system+": "+name, value, good))
}

// refusals are the writes so far that found no space.
func (f *filled) refusals() (n int64) {
	for _, l := range f.loads {
		n += l.refused.Load()
	}
	return n
}

// fill makes a snapshot and fills the disk.
func (f *filled) fill(ctx context.Context) error {
	f.end()
	for _, l := range f.loads {
		l.may = true
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	time.Sleep(f.pause)
	if err := f.snapshot(ctx, "one"); err != nil {
		return err
	}
	for _, volume := range volumes {
		image, err := read(f.image(volume, "one"))
		if err != nil {
			return err
		}
		f.was = append(f.was, image)
	}
	if err := fillUp(filepath.Join(f.disk.dir, "filler")); err != nil {
		return err
	}
	for until := time.Now().Add(time.Minute); f.loads[1].refused.Load() == 0; {
		if time.Now().After(until) {
			return errors.New("no write has found that there is no space")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * f.pause)
	f.found("writes that found no space, and were refused as of a thin volume", fmt.Sprint(f.refusals()), true)
	return nil
}

// fillUp makes a file of all that a file system has left.
func fillUp(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	at := int64(0)
	for part := int64(256 * mib); part >= blockSize; {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, part); {
		case errors.Is(err, unix.ENOSPC):
			part /= 2
		case err != nil && !errors.Is(err, unix.EINTR):
			return errors.Join(err, f.Close())
		case err == nil:
			at += part
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// ask asks for what needs space, and what the server says of the volumes.
func (f *filled) ask(ctx context.Context) error {
	status, err := f.api.Status(ctx)
	for until := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(until) && healthy(&status); { // it looks each few seconds
		time.Sleep(100 * time.Millisecond)
		status, err = f.api.Status(ctx)
	}
	if err != nil {
		return err
	}
	for i := range status.Volumes {
		v := &status.Volumes[i]
		said := v.Health.State
		for _, t := range v.Health.Troubles {
			said += "; " + t.What
		}
		f.found("volume "+v.Name+" is", said, v.Health.State != control.HealthOK)
	}
	_, err = f.api.CloneSnapshot(ctx, volumes[1], "one", control.SnapshotClone{Volume: "clone"})
	f.found("a clone", outcome(err), true)
	before := len(f.wrong)
	made := 0
	for i := range 3 {
		if err := f.snapshot(ctx, fmt.Sprintf("full%d", i)); err != nil {
			return err
		}
		made = i + 1 - len(f.refused)
	}
	refused := "none refused"
	if len(f.refused) > 0 {
		refused = refusedOf(f.refused[:1])
	}
	f.found("further snapshots that were made all the same, and were right; why others were not", fmt.Sprintf("%d of 3; %s", made, refused), len(f.wrong) == before)
	return nil
}

// healthy reports whether some volume says that it is well.
func healthy(s *control.Status) bool {
	return slices.ContainsFunc(s.Volumes, func(v control.Volume) bool { return v.Health.State == control.HealthOK })
}

func outcome(err error) string {
	if err == nil {
		return "made: it shares all blocks"
	}
	return "refused: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// restart kills the server and starts it without space.
func (f *filled) restart(ctx context.Context) error {
	if err := f.kill(); err != nil {
		return err
	}
	f.end()
	if err := f.start(); err != nil {
		return err
	}
	f.found("killed with the disk full, the server starts again", "yes", true)
	return f.begin(ctx)
}

// free deletes all snapshots.
func (f *filled) free(ctx context.Context) error {
	for lun, volume := range volumes {
		image, err := read(f.image(volume, "one"))
		if err != nil {
			return err
		}
		if !bytes.Equal(image, f.was[lun]) {
			f.wrong = append(f.wrong, "the snapshot of volume "+volume+" is not as it was")
		}
		all, err := f.api.Snapshots(ctx, volume)
		if err != nil {
			return err
		}
		for _, s := range all {
			if _, err := f.api.DeleteSnapshot(ctx, volume, s.Name); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	for refused := f.refusals(); ; {
		time.Sleep(f.pause)
		now := f.refusals()
		if now == refused {
			break
		}
		if refused = now; time.Since(began) > time.Minute {
			break
		}
	}
	wrote := f.wrote()
	time.Sleep(f.pause)
	f.found("once the snapshots were deleted, and nothing else, writes went on", fmt.Sprintf("%d in %v", f.wrote()-wrote, f.pause), f.wrote() > wrote && time.Since(began) < time.Minute)
	return nil
}

// compare reads the volumes.
func (f *filled) compare(ctx context.Context) error {
	f.end()
	for lun, l := range f.loads {
		content, err := f.content(ctx, uint64(lun))
		if err != nil {
			return err
		}
		now := l.tick()
		if err := l.judge(content, now, now); err != nil {
			f.wrong = append(f.wrong, fmt.Sprintf("volume %s: %v", volumes[lun], err))
		}
		for _, err := range l.errs {
			f.wrong = append(f.wrong, err.Error())
		}
	}
	wrong := "none"
	if len(f.wrong) > 0 {
		wrong = fmt.Sprintf("%d, the first: %s", len(f.wrong), f.wrong[0])
	}
	f.found("volumes, snapshots and reads that were wrong", wrong, len(f.wrong) == 0)
	return nil
}
