package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/scripts/evidence/daemon"
)

// most is how long a start with all volumes may take.
const most = 3 * time.Second

// changes makes volumes and targets by the API, starts with them, and has several
// writers change them; each change adds one to a number, so that one that is lost is
// missing in the sum.
func changes(ctx context.Context, o options) (facts, error) {
	dir, err := os.MkdirTemp("", "operate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := daemon.New(o.Tgtd, dir, `# made by evidence-operate
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {first: {type: "null", size: 1MiB}}
targets: {"iqn.2026-11.example:first": {luns: {0: first}}}
`)
	if err != nil {
		return nil, err
	}
	if _, err := s.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = s.Kill(syscall.SIGKILL) }()
	var out facts
	began := time.Now()
	if err := create(ctx, s, o.Volumes); err != nil {
		return nil, err
	}
	out = append(out, fact{fmt.Sprintf("%d volumes and as many targets created, %d to a request", o.Volumes, batch), since(began), true})
	took, err := restart(s)
	if err != nil {
		return nil, err
	}
	out = append(out, fact{fmt.Sprintf("start with them, at most %v", most), took.Round(10 * time.Millisecond).String(), took <= most})
	w := &writers{left: int64(o.Changes), volumes: o.Volumes}
	began = time.Now()
	if err := w.run(ctx, s, o.Writers); err != nil {
		return nil, err
	}
	spent := time.Since(began)
	slices.Sort(w.took)
	out = append(out,
		fact{fmt.Sprintf("%d changes by %d writers", o.Changes, o.Writers), fmt.Sprintf("%s, %.1f a second", spent.Round(time.Second), float64(o.Changes)/spent.Seconds()), true},
		fact{"one change: median, 99th percentile", fmt.Sprintf("%v, %v", at(w.took, 50), at(w.took, 99)), true},
		fact{"refused because another writer was first, and made again", strconv.FormatInt(w.stale.Load(), 10), true})
	sum, err := total(s.Config)
	if err != nil {
		return nil, err
	}
	lost := int64(o.Changes) - sum
	out = append(out, fact{"changes lost, by the sum in the file", strconv.FormatInt(lost, 10), lost == 0})
	if took, err = restart(s); err != nil {
		return nil, err
	}
	return append(out, fact{fmt.Sprintf("start with the file that came of it, at most %v", most), took.Round(10 * time.Millisecond).String(), took <= most}), nil
}

func since(t time.Time) string { return time.Since(t).Round(10 * time.Millisecond).String() }

func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(100 * time.Microsecond)
}

func volumeName(i int) string { return fmt.Sprintf("vol%04d", i) }

// batch is how many volumes one request makes.
const batch = 100

func create(ctx context.Context, s *daemon.Server, n int) error {
	api, err := control.Dial(s.Socket())
	if err != nil {
		return err
	}
	defer api.Close()
	for from := 0; from < n; from += batch {
		var edits []control.Edit
		for i := from; i < min(from+batch, n); i++ {
			name := volumeName(i)
			edits = append(edits,
				control.Edit{Path: []string{"volumes", name}, Set: control.Object{"type": "file", "path": name + ".img", "size": "1MiB", "sanitize-rate": "1MiB"}, IfNoneMatch: "*"},
				control.Edit{Path: []string{"targets", "iqn.2026-11.example:" + name}, Set: control.Object{"luns": []any{map[string]any{"lun": 0, "volume": name}}}})
		}
		if _, err := api.Change(ctx, control.Changes{Edits: edits}); err != nil {
			return err
		}
	}
	return nil
}

func restart(s *daemon.Server) (time.Duration, error) {
	if err := s.Kill(syscall.SIGTERM); err != nil {
		return 0, err
	}
	began := time.Now()
	_, err := s.Start()
	return time.Since(began), err
}

// writers make changes until none are left to make.
type writers struct {
	left    int64
	volumes int
	stale   atomic.Int64

	mu   sync.Mutex
	took []time.Duration
	errs error
}

func (w *writers) run(ctx context.Context, s *daemon.Server, n int) error {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			err := w.write(ctx, s, rand.New(rand.NewPCG(uint64(i), 0)))
			w.mu.Lock()
			w.errs = errors.Join(w.errs, err)
			w.mu.Unlock()
		})
	}
	running.Wait()
	return w.errs
}

func (w *writers) write(ctx context.Context, s *daemon.Server, r *rand.Rand) error {
	api, err := control.Dial(s.Socket())
	if err != nil {
		return err
	}
	defer api.Close()
	for atomic.AddInt64(&w.left, -1) >= 0 {
		name := volumeName(r.IntN(min(w.volumes, 50))) // few, so that writers meet
		for done := false; !done; {
			if done, err = w.add(ctx, api, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds one; done is false if somebody else was first.
func (w *writers) add(ctx context.Context, api *control.Client, name string) (done bool, err error) {
	v, err := api.Volume(ctx, name)
	if err != nil {
		return false, err
	}
	text, _ := v.Config["sanitize-rate"].(string)
	rate, err := conf.ParseSize(text)
	if err != nil {
		return false, err
	}
	began := time.Now()
	_, err = api.Patch(ctx, control.VolumeAt(name), control.Object{"sanitize-rate": (rate + conf.MiB).String()}, control.Permissions{}, control.Condition{Match: v.ETag})
	var refusal *control.Refusal
	if errors.As(err, &refusal) && refusal.Stale {
		w.stale.Add(1)
		return false, nil
	}
	w.mu.Lock()
	w.took = append(w.took, time.Since(began))
	w.mu.Unlock()
	return err == nil, err
}

// total is the sum of what was added, in the file.
func total(path string) (sum int64, err error) {
	cfg, _, err := conf.Load(path)
	if err != nil {
		return 0, err
	}
	for _, v := range cfg.Volumes {
		if strings.HasPrefix(v.Name, "vol") {
			sum += int64(v.SanitizeRate/conf.MiB) - 1
		}
	}
	return sum, nil
}
