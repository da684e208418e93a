package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

const sendingConfig = `# made by evidence-bulk
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {dense: {type: file, path: DIR/dense.img}, half: {type: file, path: DIR/half.img}}
targets: {"` + target + `": {luns: {0: dense, 1: half}}}
`

// altered are the places that are written between two copies of the dense volume.
const altered = 64

// copying is a way to copy a volume from one server to the other.
type copying struct {
	name string
	// begin makes all ready whose time does not count.
	begin func(ctx context.Context, volume string) error
	copy  func(ctx context.Context, volume string) error
	// to is where the copy is.
	to func(volume string) string
	// forget removes it.
	forget func(volume string) error
}

// image is what is copied.
type image struct {
	name, volume string
	again        bool // there is a copy, which is old by some places
	kept         bool // the copy is needed again
}

var images = []image{
	{"dense", "dense", false, true},
	{fmt.Sprintf("dense, a second time after %d writes of 4 KiB", altered), "dense", true, true},
	{"half of it holes", "half", false, false},
}

// comparison is servers and a shell with ways to copy between them.
type comparison struct {
	*pair
	shell *shell
	size  int64
	ways  []copying
	now   *reception // that somebody may send to
}

// sample is what one copy took.
type sample struct{ elapsed, spent time.Duration }

// reaped is how long sshd may take to look after a child that has ended.
const reaped = 200 * time.Millisecond

// spent is the CPU time of everybody who copies.
func (c *comparison) spent() time.Duration {
	return commands + spentBy(c.from.Process.Pid) + spentBy(c.to.Process.Pid) + spentBy(c.shell.server.Process.Pid)
}

func compare(ctx context.Context, o options, at string) (result, error) {
	p, err := newPair(o, at, sendingConfig)
	if err != nil {
		return result{}, err
	}
	c := &comparison{pair: p, size: o.MiB * mib}
	defer p.close()
	for _, volume := range []string{"dense", "half"} {
		if err := makeImage(c.source(volume), c.size, volume == "half"); err != nil {
			return result{}, err
		}
	}
	if err := errors.Join(p.from.start(), p.to.start()); err != nil {
		return result{}, err
	}
	if c.shell, err = newShell(filepath.Join(p.dir, "ssh")); err != nil {
		return result{}, err
	}
	defer c.shell.close()
	c.ways = []copying{
		{"lunar", c.awaitSender, c.send, func(volume string) string { return c.place(volume) + ".receiving" },
			func(volume string) error { return gone(c.place(volume)+partial, c.place(volume)+journal) }},
		c.plain("scp", func(from, to string) error { return c.shell.scp(from, to) }),
		c.plain("scp-aes", func(from, to string) error { return c.shell.scp(from, to, "-c", cipher) }),
		// Times of files are compared in seconds: two changes in one would be none.
		c.plain("rsync", func(from, to string) error { return c.shell.rsync(from, to, "-S", "--inplace", "--ignore-times") }),
	}
	took := map[string][][]sample{}
	for _, i := range images {
		took[i.name] = make([][]sample, len(c.ways))
	}
	for round := range o.Rounds {
		for _, i := range images {
			if err := c.round(ctx, i, round, took[i.name]); err != nil {
				return result{}, fmt.Errorf("%s: %w", i.name, err)
			}
		}
	}
	return c.result(o, took), nil
}

// awaitSender has the other server wait.
func (c *comparison) awaitSender(ctx context.Context, volume string) (err error) {
	c.now, err = c.receive(ctx, volume, true)
	return err
}

// send is the command that an administrator gives, to its end.
func (c *comparison) send(_ context.Context, volume string) error {
	return run(daemon.Lunar(c.from.Binary), "volume", "send", volume, c.now.at, "--incremental", "--key-file", c.keyFile(), "--socket", c.from.Socket())
}

// plain is a program that copies files.
func (c *comparison) plain(name string, program func(from, to string) error) copying {
	to := func(volume string) string { return filepath.Join(c.to.Dir, name+"-"+volume+".img") }
	return copying{
		name:  name,
		begin: func(context.Context, string) error { return nil },
		copy: func(_ context.Context, volume string) error {
			return errors.Join(program(c.source(volume), to(volume)), stable(to(volume)))
		},
		to:     to,
		forget: func(volume string) error { return gone(to(volume)) },
	}
}

// round copies an image in every way, each time another one first.
func (c *comparison) round(ctx context.Context, i image, round int, took [][]sample) error {
	if i.again {
		if err := alter(ctx, c.from.portal, 0, c.size, altered); err != nil {
			return err
		}
	}
	for n := range c.ways {
		n = (n + round) % len(c.ways)
		d, err := c.once(ctx, i, &c.ways[n])
		if err != nil {
			return fmt.Errorf("%s: %w", c.ways[n].name, err)
		}
		took[n] = append(took[n], d)
	}
	return nil
}

func (c *comparison) once(ctx context.Context, i image, w *copying) (s sample, err error) {
	if !i.again {
		if err := w.forget(i.volume); err != nil {
			return s, err
		}
	}
	if err := errors.Join(cold(c.source(i.volume)), w.begin(ctx, i.volume)); err != nil {
		return s, err
	}
	began, before := time.Now(), c.spent()
	err = w.copy(ctx, i.volume)
	s.elapsed = time.Since(began)
	time.Sleep(reaped)
	s.spent = c.spent() - before
	if err == nil && w.name == "lunar" {
		_, err = c.received(ctx, c.now)
	}
	if err == nil {
		err = equal(c.source(i.volume), w.to(i.volume))
	}
	if err == nil && !i.kept {
		err = w.forget(i.volume)
	}
	return s, err
}

// least is how many times as fast as scp with the same cipher a first copy has to be.
const least = 1.5

// ratios are how many times as fast as the faster scp, and as rsync, the first way is.
func ratios(t []time.Duration) (scp, rsync float64) {
	return min(t[1], t[2]).Seconds() / t[0].Seconds(), t[3].Seconds() / t[0].Seconds()
}

func (c *comparison) result(o options, took map[string][][]sample) (r result) {
	r.How = fmt.Sprintf("Volumes of %d MiB, below %s. Each time is that of a command, medians of %d rounds in which the four take turns. CPU is the time of all processes of both sides in the round of the median.", o.MiB, filepath.Dir(c.dir), o.Rounds)
	r.Columns = []string{"volume", "`lunar volume send --incremental`", "`scp`", "`scp -c " + cipher + "`", "`rsync`, same cipher", "faster than the faster `scp`", "faster than `rsync`"}
	for _, i := range images {
		row, medians, fastest := []string{i.name}, make([]time.Duration, len(c.ways)), make([]time.Duration, len(c.ways))
		for n, all := range took[i.name] {
			slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(a.elapsed, b.elapsed) })
			middle := all[len(all)/2]
			medians[n], fastest[n] = middle.elapsed, all[0].elapsed
			row = append(row, fmt.Sprintf("%.2f s (%.2f to %.2f), %.0f MiB/s, CPU %.2f s", middle.elapsed.Seconds(), all[0].elapsed.Seconds(), all[len(all)-1].elapsed.Seconds(), float64(o.MiB)/middle.elapsed.Seconds(), middle.spent.Seconds()))
		}
		scp, rsync := ratios(medians)
		scpFastest, rsyncFastest := ratios(fastest)
		r.Rows = append(r.Rows, append(row, fmt.Sprintf("%.2f", scp), fmt.Sprintf("%.2f", rsync)))
		r.Facts = append(r.Facts,
			notes.Found(i.name+": times as fast as `scp`, at least 1.5", fmt.Sprintf("%.2f; by the fastest rounds %.2f", scp, scpFastest), scp >= least),
			notes.Found(i.name+": times as fast as `rsync`, more than 1", fmt.Sprintf("%.2f; by the fastest rounds %.2f", rsync, rsyncFastest), rsync > 1))
	}
	r.Facts = append(r.Facts, notes.Found("copies that were compared, byte for byte", fmt.Sprintf("%d of %d equal", len(images)*len(c.ways)*o.Rounds, len(images)*len(c.ways)*o.Rounds), true))
	return r
}
