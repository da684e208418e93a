package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/notes"
)

const largeConfig = `# made by evidence-snapshots
cache: {size: 64MiB, segment: MEMORY/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  large: {type: file, path: DISK/large.img, size: 100GiB DIRECT}
  back: {type: file, path: DISK/back.img, size: 1GiB, write: back, cache: {dirty-limit: 16MiB}}
  pieces: {type: file, path: DISK/pieces.img, size: 1GiB}
targets: {"` + target + `": {luns: {0: large, 1: back, 2: pieces}}}
`

// scattered is how many blocks of the large volume are written.
const scattered = 2000

// pieces is how many extents the volume of that name has.
const pieces = 128 * kib

// withLarge runs a check with a server of largeConfig.
func withLarge(o options, system string, run func(*server) error) (err error) {
	s, err := newServer(o, system, 64*gib, largeConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := makePieces(filepath.Join(s.disk.dir, "pieces.img")); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	return run(s)
}

// makePieces makes a file of extents of 4 KiB with holes between them.
func makePieces(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range int64(pieces) {
		if _, err := f.WriteAt(content(int(i), 1), i*2*blockSize); err != nil {
			return err
		}
	}
	return errors.Join(f.Truncate(gib), f.Sync())
}

// clones measures clones of a large volume.
func clones(ctx context.Context, o options) (r result, err error) {
	const rounds, target = 10, time.Second
	var took []time.Duration
	wrong := 0
	err = withLarge(o, "xfs", func(s *server) error {
		l := &load{ledger: newLedger(gib / blockSize), writers: 8}
		if err := l.begin(ctx, s.portal); err != nil {
			return err
		}
		for l.wrote.Load() < scattered {
			time.Sleep(time.Millisecond)
		}
		l.end()
		r.How = fmt.Sprintf("A volume of 100 GiB, sparse, on xfs, to whose first GiB %d blocks of 4 KiB were written at random places, each of which is an extent. One snapshot; %d clones of it, from the request to the answer, when each is a volume of the server and in its configuration file. Of the first clone the GiB is read and judged by the ledger. The last row is a volume of 1 GiB in %d extents: a clone takes time by their number.", l.wrote.Load(), rounds, pieces)
		asked := l.tick()
		if _, err := s.api.Snapshot(ctx, "large", control.SnapshotRequest{Name: "one"}); err != nil {
			return err
		}
		for i := range rounds {
			name, began := fmt.Sprintf("clone%d", i), time.Now()
			out, err := s.api.CloneSnapshot(ctx, "large", "one", control.SnapshotClone{Volume: name})
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
			r.Rows = append(r.Rows, []string{name, out.Took, took[i].Round(time.Millisecond).String()})
		}
		f, err := os.Open(filepath.Join(s.disk.dir, "clone0.img"))
		if err != nil {
			return err
		}
		defer f.Close()
		begins := make([]byte, gib)
		if _, err := f.ReadAt(begins, 0); err != nil {
			return err
		}
		if err := l.judge(begins, asked, l.tick()); err != nil || len(l.errs) > 0 {
			wrong++
			r.Rows = append(r.Rows, []string{"wrong", fmt.Sprint(err), fmt.Sprint(l.errs)})
		}
		if _, err := s.api.Snapshot(ctx, "pieces", control.SnapshotRequest{Name: "one"}); err != nil {
			return err
		}
		began := time.Now()
		out, err := s.api.CloneSnapshot(ctx, "pieces", "one", control.SnapshotClone{Volume: "many"})
		r.Rows = append(r.Rows, []string{fmt.Sprintf("of %d extents", pieces), out.Took, time.Since(began).Round(time.Millisecond).String()})
		return err
	})
	if err != nil {
		return r, err
	}
	r.Columns = []string{"clone", "its file was made in", "request to answer"}
	longest := slices.Max(took)
	r.Facts = []notes.Fact{
		notes.Found("longest, at most 1 s", longest.Round(time.Millisecond).String(), o.Untimed || longest < target),
		notes.Found("clones that are not what was acknowledged", strconv.Itoa(wrong), wrong == 0),
	}
	return r, nil
}

// pauses measures for how long commands are held.
func pauses(ctx context.Context, o options) (r result, err error) {
	const rounds, ofPieces = 30, 5 // those take seconds each
	r.How = fmt.Sprintf("%d snapshots of each volume (%d of that in pieces), one in 50 ms. Held: as the server tells it, from when commands begin to wait until they go on; longest command: of the initiators meanwhile. Rollbacks keep what the volume held. Load: 8 writers of 4 KiB, as of the kills.", rounds, ofPieces)
	r.Columns = []string{"volume", "held, median", "held, longest", "median of a command", "longest command"}
	worst := time.Duration(0)
	for _, system := range []string{"xfs", "btrfs"} {
		err = withLarge(o, system, func(s *server) error {
			for _, row := range []struct {
				name, volume string
				lun          uint64
				loaded       bool
				rounds       int
			}{
				{"100 GiB, sparse, idle", "large", 0, false, rounds}, {"100 GiB, sparse, loaded", "large", 0, true, rounds},
				{"1 GiB, `write: back`, loaded", "back", 1, true, rounds}, {fmt.Sprintf("1 GiB in %d extents, idle", pieces), "pieces", 2, false, ofPieces},
			} {
				held, took, longest, err := s.pausesOf(ctx, row.volume, row.lun, row.loaded, row.rounds)
				if err != nil {
					return fmt.Errorf("%s: %w", row.name, err)
				}
				commands := []string{"", ""}
				if row.loaded {
					commands = []string{took.Round(time.Microsecond).String(), longest.Round(time.Millisecond / 10).String()}
				}
				worst = max(worst, held[len(held)-1])
				r.Rows = append(r.Rows, append([]string{system + ": " + row.name, held[len(held)/2].String(), held[len(held)-1].String()}, commands...))
			}
			held, err := s.rolledBack(ctx, "pieces", 3)
			if err != nil {
				return fmt.Errorf("rollback: %w", err)
			}
			worst = max(worst, held[len(held)-1])
			r.Rows = append(r.Rows, []string{fmt.Sprintf("%s: rollback of 1 GiB in %d extents, kept", system, pieces), held[len(held)/2].String(), held[len(held)-1].String(), "", ""})
			return nil
		})
		if err != nil {
			return r, err
		}
	}
	r.Facts = []notes.Fact{notes.Found("longest of all; the deadline is 10 s", worst.String(), o.Untimed || worst < control.DefaultHold)}
	return r, nil
}

// rolledBack rolls a volume back some times, and returns for how long commands were held.
func (s *server) rolledBack(ctx context.Context, volume string, rounds int) (held []time.Duration, err error) {
	if _, err := s.api.Snapshot(ctx, volume, control.SnapshotRequest{Name: "back"}); err != nil {
		return nil, err
	}
	for range rounds {
		out, err := s.api.RollBack(ctx, volume, "back", control.SnapshotRollback{Force: true})
		if err != nil {
			return nil, err
		}
		one, err := time.ParseDuration(out.Held)
		if err != nil {
			return nil, err
		}
		held = append(held, one)
	}
	slices.Sort(held)
	return held, nil
}

// pausesOf makes snapshots of a volume, and deletes them.
func (s *server) pausesOf(ctx context.Context, volume string, lun uint64, loaded bool, rounds int) (held []time.Duration, median, longest time.Duration, err error) {
	l := &load{ledger: newLedger(gib / blockSize), lun: lun, writers: 8}
	if loaded {
		if err := l.begin(ctx, s.portal); err != nil {
			return nil, 0, 0, err
		}
		defer l.end()
		time.Sleep(time.Second)
	}
	l.figures()
	for i := range rounds {
		time.Sleep(50 * time.Millisecond)
		name := fmt.Sprintf("p%d", i)
		made, err := s.api.Snapshot(ctx, volume, control.SnapshotRequest{Name: name})
		if err != nil {
			return nil, 0, 0, err
		}
		one, err := time.ParseDuration(made.Held)
		if err != nil {
			return nil, 0, 0, err
		}
		held = append(held, one)
	}
	median, _, longest = l.figures()
	for i := range rounds {
		if _, err := s.api.DeleteSnapshot(ctx, volume, fmt.Sprintf("p%d", i)); err != nil {
			return nil, 0, 0, err
		}
	}
	slices.Sort(held)
	return held, median, longest, errors.Join(l.errs...)
}
