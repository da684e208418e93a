package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// most is how long a start with all volumes may take.
const most = 3 * time.Second

// scaleConfig is what the server has before. Its volumes are sparse files but for that of
// the canary, which is in memory: what the medium does at the time is not asked.
const scaleConfig = `# made by evidence-operate
portal-groups:
  a: {listen: ["127.0.0.1:0"]}
volumes:
  canary: {type: ram, size: 16MiB}
targets:
  iqn.2026-11.example:canary: {luns: {0: canary}}
`

// trial is a server whose objects writers change.
type trial struct {
	options
	*daemon.Server
	portal string
	found  facts
	acked  map[string]int64 // changes that were acknowledged, by volume
}

// scale makes volumes and targets by the API, has several writers change them beside an
// initiator, starts with them, and kills the server amid changes. Each change adds one to
// a number of a volume, so that one that is lost is missing there.
func scale(ctx context.Context, o options) (facts, error) {
	dir, err := os.MkdirTemp("", "operate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := daemon.New(o.Tgtd, dir, scaleConfig)
	if err != nil {
		return nil, err
	}
	t := &trial{options: o, Server: s, acked: map[string]int64{}}
	if _, err := t.begin(); err != nil {
		return nil, err
	}
	defer func() { _ = t.Kill(syscall.SIGKILL) }()
	for _, step := range []func(context.Context) error{t.create, t.start, t.change, t.compare, t.start, t.kill} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t.found, nil
}

func (t *trial) tell(good bool, name, format string, args ...any) {
	t.found = append(t.found, notes.Found(name, fmt.Sprintf(format, args...), good))
}

func volumeName(i int) string { return fmt.Sprintf("vol%04d", i) }

// create has each writer make a volume and a target for it, one pair to a request.
func (t *trial) create(ctx context.Context) error {
	w := &writers{left: t.Volumes, make: func(ctx context.Context, api *control.Client, n int) (string, error) {
		name := volumeName(n)
		_, err := api.Change(ctx, control.Changes{Edits: []control.Edit{
			{Path: []string{"volumes", name}, Set: control.Object{"type": "file", "path": name + ".img", "size": "1MiB", "sanitize-rate": "1MiB"}, IfNoneMatch: "*"},
			{Path: []string{"targets", "iqn.2026-11.example:" + name}, Set: control.Object{"luns": []any{map[string]any{"lun": 0, "volume": name}}}, IfNoneMatch: "*"}}})
		return name, err
	}}
	spent, err := w.run(ctx, t.Socket(), t.Writers)
	t.tell(true, fmt.Sprintf("%d volumes, which are sparse files of 1 MiB, each with a target, made by %d writers, a pair to a request", t.Volumes, t.Writers), "%v, %.1f pairs a second", spent.Round(10*time.Millisecond), float64(t.Volumes)/spent.Seconds())
	return err
}

// start ends the server in order, and starts it again.
func (t *trial) start(context.Context) error {
	if err := t.Kill(syscall.SIGTERM); err != nil {
		return err
	}
	took, err := t.begin()
	t.tell(t.Untimed || took <= most, fmt.Sprintf("start with %d volumes until portals are open, at most %v", t.Volumes+1, most), "%v", took.Round(10*time.Millisecond))
	return err
}

func (t *trial) begin() (_ time.Duration, err error) {
	began := time.Now()
	t.portal, err = t.Start()
	return time.Since(began), err
}

// change has the writers change volumes, beside a canary.
func (t *trial) change(ctx context.Context) error {
	c := newCanary(t.portal, false)
	defer c.Leave()
	alone, err := c.Live(ctx, canaryAlone, nil)
	if err != nil {
		return err
	}
	alone = (&stillness{}).besides(alone)
	before, err := t.lastGeneration()
	if err != nil {
		return err
	}
	w := &writers{left: t.Changes, make: t.add}
	over, stop := context.WithCancel(ctx)
	var meanwhile canary.Slice
	var lived error
	watching := make(chan struct{})
	go func() { meanwhile, lived = c.Live(over, 0, nil); close(watching) }()
	var still stillness
	watched := make(chan struct{})
	go func() { still.watch(over); close(watched) }()
	spent, err := w.run(ctx, t.Socket(), t.Writers)
	stop()
	<-watching
	<-watched
	meanwhile = still.besides(meanwhile)
	spent -= still.total()
	if err := errors.Join(err, lived); err != nil {
		return err
	}
	after, err := t.lastGeneration()
	if err != nil {
		return err
	}
	t.note(w)
	var took []time.Duration
	for _, one := range still.without(w.spans) {
		took = append(took, one.Took())
	}
	slices.Sort(took)
	t.tell(true, fmt.Sprintf("%d changes by %d writers, each with If-Match", t.Changes, t.Writers), "%v, %.1f a second", spent.Round(10*time.Millisecond), float64(t.Changes)/spent.Seconds())
	t.tell(true, "one change, as its writer waits for it: median, 99th percentile, longest", "%v, %v, %v", at(took, 50), at(took, 99), at(took, 100))
	t.tell(true, "refused with 412 because another writer was first, read again and made", "%d", w.stale)
	t.tell(after-before <= t.Changes, "states of the file that came of them, for changes that meet are made together", "%d", after-before)
	t.tell(true, "an initiator's reads and writes of 4 KiB meanwhile: median, 99th percentile, longest", "%s", latencies(meanwhile))
	t.tell(true, "the same without changes", "%s", latencies(alone))
	t.tell(t.Untimed || len(meanwhile.Slow) == 0, fmt.Sprintf("commands of the initiator that waited longer than %v", stalled), "%d", len(meanwhile.Slow))
	t.tell(harm(c) == 0, "its commands that failed, blocks that were wrong, sessions that were lost", "%d", harm(c))
	if d := still.total(); d > 0 {
		t.tell(true, "the machine stood still meanwhile, with all of its programs; what waited for that is not in the times above", "%v", d.Round(time.Second))
	}
	return nil
}

// met are so few volumes that writers meet.
const met = 50

// add adds one to a number of a volume, if it is as it was read.
func (t *trial) add(ctx context.Context, api *control.Client, _ int) (volume string, err error) {
	volume = volumeName(rand.IntN(min(t.Volumes, met)))
	v, err := api.Volume(ctx, volume)
	if err != nil {
		return volume, err
	}
	text, _ := v.Config["sanitize-rate"].(string)
	rate, err := conf.ParseSize(text)
	if err != nil {
		return volume, err
	}
	_, err = api.Patch(ctx, control.VolumeAt(volume), control.Object{"sanitize-rate": (rate + conf.MiB).String()}, control.Permissions{}, control.Condition{Match: v.ETag})
	return volume, err
}

// note adds what was acknowledged.
func (t *trial) note(w *writers) {
	for name, n := range w.acked {
		t.acked[name] += n
	}
}

// compare looks for changes that were lost, in the file and in what the server has in force.
func (t *trial) compare(ctx context.Context) error {
	api, err := control.Dial(t.Socket())
	if err != nil {
		return err
	}
	defer api.Close()
	file, _, err := conf.Load(t.Config)
	if err != nil {
		return err
	}
	text, err := api.Running(ctx)
	if err != nil {
		return err
	}
	running, _, err := conf.Parse("running", []byte(text))
	if err != nil {
		return err
	}
	running.InStateDir(t.State)
	file.InStateDir(t.State)
	var differ []string
	for _, d := range conf.Diff(running, file) {
		differ = append(differ, d.String())
	}
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	missing, _ := t.missing(file, nil)
	t.tell(missing == 0, "changes lost, by the numbers in the file", "%d", missing)
	t.tell(len(differ) == 0 && len(status.Drift) == 0, "keys in which what is in force differs from the file", "%s", strings.TrimSpace(fmt.Sprint(len(differ)+len(status.Drift), " ", strings.Join(differ, "; "))))
	kept, err := filepath.Glob(filepath.Join(t.State, "generations", "*"))
	t.tell(len(kept) <= keptStates, fmt.Sprintf("states of the file that are kept, at most %d", keptStates), "%d", len(kept))
	return err
}

// keptStates is documented in docs/api.md.
const keptStates = 20

// missing are the changes of a configuration that were acknowledged and are not there, and
// those that are there and nobody made; of those in flight it is not known.
func (t *trial) missing(cfg *conf.Config, inFlight map[string]int64) (lost, strange int64) {
	for i := range t.Volumes {
		name := volumeName(i)
		v, has := cfg.Volume(name), int64(0)
		if v != nil {
			has = int64(v.SanitizeRate/conf.MiB) - 1
		}
		lost += max(t.acked[name]-has, 0)
		strange += max(has-t.acked[name]-inFlight[name], 0)
	}
	return lost, strange
}

// kill kills the server amid changes, and looks at what the next start has.
func (t *trial) kill(ctx context.Context) error {
	w := &writers{left: t.Changes, make: t.add, mortal: true, enough: min(t.Changes/2, 200)}
	w.killed = func() { _ = t.Kill(syscall.SIGKILL) }
	if _, err := w.run(ctx, t.Socket(), t.Writers); err != nil {
		return err
	}
	t.note(w)
	took, err := t.begin()
	if err != nil {
		return err
	}
	file, _, err := conf.Load(t.Config)
	if err != nil {
		return err
	}
	lost, strange := t.missing(file, w.inFlight)
	t.tell(lost == 0, fmt.Sprintf("changes lost by kill -9 after %d more", w.made), "%d", lost)
	t.tell(strange == 0, "changes that are there and nobody asked for", "%d", strange)
	left, err := filepath.Glob(filepath.Join(t.Dir, ".*.new"))
	t.tell(len(left) == 0, "half-written files beside the file after the start", "%d", len(left))
	t.tell(t.Untimed || took <= most, fmt.Sprintf("start after that, at most %v", most), "%v", took.Round(10*time.Millisecond))
	return err
}

func (t *trial) lastGeneration() (int, error) {
	all, err := filepath.Glob(filepath.Join(t.State, "generations", "*.json"))
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSuffix(filepath.Base(slices.Max(all)), ".json"))
}

func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(100 * time.Microsecond)
}
