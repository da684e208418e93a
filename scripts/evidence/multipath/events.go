package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"lunar/scripts/evidence/generations"
	"lunar/scripts/evidence/multipath/writers"
	"lunar/scripts/evidence/site"
)

// event is a row of the table.
type event struct {
	name   string
	rounds int
	target time.Duration // of the worst gap; 0: none
	round  func(*site.Site) error
}

func lasting(what func(*site.Site, time.Duration) error, d time.Duration) func(*site.Site) error {
	return func(s *site.Site) error { return what(s, d) }
}

func (r *run) events() error {
	const second = time.Second
	fmt.Print(`
| what happens | rounds | gap, median | worst | to reach | slowest command | gap of files, median | worst | paths whole again, median | worst | writes | reads |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`)
	for _, e := range []event{
		{"nothing", 1, 0, func(*site.Site) error { time.Sleep(10 * second); return nil }},
		{"planned move", r.Moves, 7 * second, (*site.Site).Move},
		{"`kill -9` of the owner, which starts again after 8 s", r.Kills, 7 * second, lasting((*site.Site).Kill, 8*second)},
		{"SIGSTOP of the owner for 25 s", r.Stops, 18 * second, lasting((*site.Site).Stop, 25*second)},
		{"two of three members of etcd stopped for 10 s", r.Quorum, 0, lasting((*site.Site).NoQuorum, 10*second)},
	} {
		if e.rounds == 0 {
			continue
		}
		if err := r.event(&e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

// measured are of a round.
type measured struct{ gap, slowest, files, whole time.Duration }

func (r *run) event(e *event) error {
	var all []measured
	before, err := r.guest.read()
	if err != nil {
		return err
	}
	for i := 0; i < e.rounds; i++ {
		stood := r.guest.stood.Load()
		m, err := r.round(e)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if r.guest.stood.Load() != stood { // then the round tells nothing
			r.again++
			i--
			continue
		}
		all = append(all, m)
		fmt.Fprintf(os.Stderr, "%s %d: gap %v, slowest %v, of files %v, paths %v\n", e.name, i, m.gap, m.slowest, m.files, m.whole)
	}
	after, err := r.guest.read()
	if err != nil {
		return err
	}
	gap, files, whole := column(all, func(m measured) time.Duration { return m.gap }), column(all, func(m measured) time.Duration { return m.files }), column(all, func(m measured) time.Duration { return m.whole })
	fmt.Printf("| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %d | %d |\n", e.name, e.rounds,
		seconds(generations.Median(gap)), seconds(slices.Max(gap)), seconds(e.target),
		seconds(slices.Max(column(all, func(m measured) time.Duration { return m.slowest }))),
		seconds(generations.Median(files)), seconds(slices.Max(files)), seconds(generations.Median(whole)), seconds(slices.Max(whole)),
		done(after).Writes-done(before).Writes, done(after).Reads-done(before).Reads)
	if e.target > 0 && slices.Max(gap) > e.target {
		r.late = append(r.late, e.name)
	}
	return nil
}

func column(all []measured, of func(measured) time.Duration) (list []time.Duration) {
	for _, m := range all {
		list = append(list, of(m))
	}
	return list
}

// done are blocks and files.
func done(f writers.Figures) (c writers.Counts) {
	c = f.Disk.Counts
	c.Writes += f.Files.Writes
	c.Reads += f.Files.Reads
	return c
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// round returns when the guest uses three paths again.
func (r *run) round(e *event) (m measured, err error) {
	if err := r.guest.begin(); err != nil {
		return m, err
	}
	time.Sleep(time.Second)
	if err := e.round(r.site); err != nil {
		return m, err
	}
	began := time.Now()
	if err := r.whole(); err != nil {
		return m, err
	}
	m.whole = time.Since(began)
	f, err := r.guest.read()
	if err != nil {
		return m, err
	}
	if len(f.Wrong) > 0 {
		return m, fmt.Errorf("found %s", strings.Join(f.Wrong, "; "))
	}
	m.gap, m.slowest, m.files = f.Disk.Gap, f.Disk.Slowest, f.Files.Gap
	return m, nil
}

// whole waits until all paths are usable, and writes go on.
func (r *run) whole() error {
	const (
		paths = `multipathd show paths raw format "%t %T"`
		tries = 500
	)
	said := ""
	before, err := r.guest.read()
	if err != nil {
		return err
	}
	for range tries {
		time.Sleep(200 * time.Millisecond)
		if said, err = r.guest.run(paths); err != nil {
			return err
		}
		now, err := r.guest.read()
		if err != nil {
			return err
		}
		if usable(said) == len(r.site.Nodes) && now.Disk.Writes > before.Disk.Writes && now.Files.Writes > before.Files.Writes {
			return nil
		}
	}
	return fmt.Errorf("the paths are not whole after %d tries: %s", tries, said)
}

// usable counts paths that the kernel uses and that answer.
func usable(said string) (paths int) {
	for line := range strings.Lines(said) {
		w := strings.Fields(line)
		if len(w) == 2 && w[0] == "active" && (w[1] == "ready" || w[1] == "ghost") {
			paths++
		}
	}
	return paths
}
