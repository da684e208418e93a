package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/internal/initiator/load"
)

const (
	crowdSessions = 1000
	crowdMost     = 12 << 30 // bytes of the cache, or three fifths of the memory that is free
	crowdTime     = 4 * time.Second
	crowdAsks     = 100 * time.Millisecond // how often somebody asks for the status, which makes garbage
)

// crowds are what else the server has to do while one prober sends one command at
// a time. The rate is of each session, per second.
var crowds = []struct {
	title    string
	asks     bool
	sessions int
	rate     string
}{
	{"the prober alone", false, 0, ""},
	{"and the status, ten times a second", true, 0, ""},
	{"and 1,000 idle sessions", true, crowdSessions, "0.01"},
	{"and 1,000 sessions of 20 IOPS", true, crowdSessions, "20"},
}

const crowdYAML = `server: {threads: 1, limits: {sessions: 2048}}
cache: {size: %dMiB, segment: none}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  large: {type: file, path: %q, block-size: 4096, cache: true}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns: [{lun: 0, volume: large}]
`

// crowd measures what garbage collection does to those who are served.
func (k *scalingCommand) crowd(ctx context.Context, o *options, c client, dir string) (string, error) {
	dir, err := k.state(dir, "crowd")
	if err != nil {
		return "", err
	}
	bytes, err := crowdBytes()
	if err != nil {
		return "", err
	}
	if err := os.Setenv("GODEBUG", "gctrace=1"); err != nil { // the server writes a line for each collection
		return "", err
	}
	defer os.Unsetenv("GODEBUG")
	s, err := startLunar(ctx, o, serving{work: dir, files: dir, volumes: 1, bytes: bytes, block: logicalBlockKiB << 10, holes: true,
		yaml: func(port int, files []string) string {
			return fmt.Sprintf(crowdYAML, bytes>>20, port, files[0], targetName)
		}})
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return "", err
	}
	if err := c.warm(ctx, s, 0); err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "A cache of %d GiB, filled. Collections are those of the %v of each row; a pause is the time for which the collector stops all threads, twice in each.\n\n", bytes>>30, crowdTime)
	t.WriteString("| | IOPS of all | prober p50 µs | p99 µs | p99.9 µs | max µs | collections | median pause µs | longest µs |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for i := range crowds {
		line, err := c.crowded(ctx, o, s, dir, i)
		if err != nil {
			return "", fmt.Errorf("%s: %w", crowds[i].title, err)
		}
		t.WriteString(line)
		fmt.Fprint(os.Stderr, "bench: ", line)
	}
	return t.String(), nil
}

var memAvailable = regexp.MustCompile(`(?m)^MemAvailable: +(\d+) kB$`)

// crowdBytes is the size of the cache: whole GiB.
func crowdBytes() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("free memory: %w", err)
	}
	found := memAvailable.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("free memory: no MemAvailable in /proc/meminfo")
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("free memory: %w", err)
	}
	return max(1<<30, min(crowdMost, kib<<10*3/5)&^(1<<30-1)), nil
}

// crowded is one row.
func (c client) crowded(ctx context.Context, o *options, s *server, dir string, row int) (string, error) {
	load := crowds[row]
	api, err := control.Dial(filepath.Join(dir, control.SocketName))
	if err != nil {
		return "", fmt.Errorf("control socket: %w", err)
	}
	defer api.Close()
	if load.sessions > 0 {
		end, err := c.gatherCrowd(ctx, s, load.sessions, load.rate, api)
		if end != nil {
			defer end()
		}
		if err != nil {
			return "", err
		}
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	if load.asks {
		go ask(asking, api)
	}
	before, err := collections(s)
	if err != nil {
		return "", err
	}
	served := func() (n uint64) {
		status, err := api.Status(ctx)
		if err == nil {
			n = status.Volumes[0].IO.Reads
		}
		return n
	}
	from := served()
	r, err := c.probe(ctx, o, s)
	if err != nil {
		return "", err
	}
	all := float64(served()-from) / (r.Seconds + c.plan.warmup.Seconds())
	after, err := collections(s)
	if err != nil {
		return "", err
	}
	pauses := after[len(before):]
	median, longest := "–", "–"
	if len(pauses) > 0 {
		slices.Sort(pauses)
		median, longest = fmt.Sprintf("%.0f", pauses[len(pauses)/2]), fmt.Sprintf("%.0f", pauses[len(pauses)-1])
	}
	l := r.Latency
	return fmt.Sprintf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %d | %s | %s |\n", load.title, all, l.P50, l.P99, l.P999, l.Max, len(pauses)/2, median, longest), nil
}

// probe sends one command at a time. It shares its CPU with the crowd, before which
// it goes.
func (c client) probe(ctx context.Context, o *options, s *server) (*load.Result, error) {
	if o.Realtime {
		c.place = []string{"taskset", "-c", strconv.Itoa(c.cpu), "chrt", "--fifo", "2"}
	}
	r, _, err := c.run(ctx, s, workload{rw: "randread", kib: 4, depth: 1, connections: 1, tool: tgtload.with("--initiator", "iqn.2026-11.example.bench:prober")}, crowdTime)
	return r, err
}

// gatherCrowd logs sessions in that stay until end is called.
func (c client) gatherCrowd(ctx context.Context, s *server, sessions int, rate string, api *control.Client) (end func(), err error) {
	w := workload{rw: "randread", kib: 4, depth: 1, connections: sessions, tool: tgtload.with("--rate", rate)}
	line := slices.Concat(c.place, w.tool.arguments(c, s, w, 10*time.Minute))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", line, err)
	}
	end = func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait() // it was interrupted
	}
	for range 300 {
		status, err := api.Status(ctx)
		if err != nil {
			return end, err
		}
		if len(status.Sessions) >= sessions {
			time.Sleep(time.Second) // until its load is even
			return end, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return end, fmt.Errorf("%d sessions do not come: %s", sessions, bytes.TrimSpace(stderr.Bytes()))
}

// ask is a monitoring system.
func ask(ctx context.Context, api *control.Client) {
	tick := time.NewTicker(crowdAsks)
	defer tick.Stop()
	for ctx.Err() == nil {
		_, _ = api.Raw(ctx, "/v1/status") // what it costs is measured, not what it says
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// collection is a line of GODEBUG=gctrace=1: wall-clock times of its two pauses, in
// ms, with the time in between.
var collection = regexp.MustCompile(`(?m)^gc \d+ @[\d.]+s \d+%: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock`)

// collections returns the pauses of all collections of a server so far, in µs.
func collections(s *server) (pauses []float64, err error) {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return nil, fmt.Errorf("collections: %w", err)
	}
	for _, found := range collection.FindAllSubmatch(text, -1) {
		for _, ms := range found[1:] {
			v, err := strconv.ParseFloat(string(ms), 64)
			if err != nil {
				return nil, fmt.Errorf("collections: %w", err)
			}
			pauses = append(pauses, v*1e3)
		}
	}
	return pauses, nil
}
