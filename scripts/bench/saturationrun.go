package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"lunar/internal/initiator/load"
)

// saturationMiB is the size of the volume, in memory: more than any CPU cache holds.
const saturationMiB = 256

// saturationServer tells servers apart.
type saturationServer struct {
	ruled   bool
	turn    string // of the configuration; empty: the default
	threads int
}

// saturationCase is one way of running a load: a column of a table.
type saturationCase struct {
	name  string
	alone bool // without neighbours
	on    saturationServer
}

const (
	caseAlone = "alone"
	caseBare  = "without rules"
	caseRuled = "with rules"
)

var saturationCases = []saturationCase{
	{caseAlone, true, saturationServer{}},
	{caseBare, false, saturationServer{}},
	{caseRuled, false, saturationServer{ruled: true}},
}

// turnLengths are the points of the curve besides the default. The longest that there is
// is never over: nobody goes first.
var turnLengths = []string{"10us", "100us", "300us", "10ms"}

// cases of a load.
func (s *saturation) cases() []saturationCase {
	all := slices.Clone(saturationCases)
	if s.curve {
		for _, turn := range turnLengths {
			all = append(all, saturationCase{turn, false, saturationServer{ruled: true, turn: turn}})
		}
	}
	for i := range all {
		all[i].on.threads = max(1, s.threads)
	}
	return all
}

// saturator measures loads on servers that it starts when it needs them.
type saturator struct {
	options *options
	client  client
	loads   []saturation
	servers map[saturationServer]*server
}

func (m *saturator) stop() {
	for _, s := range m.servers {
		s.stop()
	}
}

// measure adds rounds of the loads with these names to the samples; no names are all.
func (m *saturator) measure(ctx context.Context, names []string, s samples) error {
	defer m.stop()
	for repeat := range m.client.plan.repeats {
		for _, l := range m.loads {
			if len(names) > 0 && !slices.Contains(names, l.name) {
				continue
			}
			r, err := m.round(ctx, l, len(s[l.name]))
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			s[l.name] = append(s[l.name], r)
			fmt.Fprintf(os.Stderr, "bench: repeat %d of %d, %s: %s\n", repeat+1, m.client.plan.repeats, l.name, saturationLine(l, r))
		}
	}
	return nil
}

// round measures all cases, first of all another one than the rounds before: a virtual
// machine may become slower the longer it works.
func (m *saturator) round(ctx context.Context, l saturation, before int) (round, error) {
	r := round{Results: map[string]load.Result{}}
	cases := l.cases()
	for i := range cases {
		c := cases[(i+before)%len(cases)]
		s, err := m.server(ctx, c.on)
		if err != nil {
			return r, err
		}
		parties := l.parties
		if c.alone {
			parties = parties[:1]
		}
		if err := m.run(ctx, s, l, c, parties, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// run lets all parties work at once.
func (m *saturator) run(ctx context.Context, s *server, l saturation, c saturationCase, parties []party, r *round) error {
	ctx, cancel := context.WithTimeout(ctx, m.client.plan.runtime+m.client.plan.warmup+20*time.Second)
	defer cancel()
	from, err := look(s)
	if err != nil {
		return err
	}
	var ended sync.WaitGroup
	results, errs, used := make([]*load.Result, len(parties)), make([]error, len(parties)), make([]time.Duration, len(parties))
	for i, p := range parties {
		ended.Go(func() { results[i], used[i], errs[i] = m.drive(ctx, s, l, p, i == 0) })
	}
	ended.Wait()
	to, err := look(s)
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	spent := time.Duration(0)
	for i, p := range parties {
		r.Results[resultOf(c.name, p.name)] = *results[i]
		spent += used[i]
	}
	r.Foreign = max(r.Foreign, foreign(from, to, spent))
	return nil
}

// resultOf is the name of a party's result in a round.
func resultOf(c, party string) string { return c + "/" + party }

// drive is one party's process.
func (m *saturator) drive(ctx context.Context, s *server, l saturation, p party, first bool) (*load.Result, time.Duration, error) {
	line := slices.Clone(m.client.place)
	if first {
		line = append(line, "chrt", "--fifo", "3")
	}
	name := l.initiator(p)
	if p.apart {
		name += "%d"
	}
	line = append(line, m.client.path, "--target", s.urls[0], "--initiator", name, "--json", "--cpu", strconv.Itoa(m.client.cpu), "--server-pid", strconv.Itoa(s.pid()),
		"--warmup", m.client.plan.warmup.String(), "--runtime", m.client.plan.runtime.String(),
		"--rw", p.rw, "--bs", strconv.Itoa(p.kib)+"k", "--depth", strconv.Itoa(p.depth), "--connections", strconv.Itoa(p.connections), "--send", "128k")
	if p.rate > 0 {
		line = append(line, "--rate", strconv.Itoa(p.rate))
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %s", line, err, bytes.TrimSpace(stderr.Bytes()))
	}
	r, err := parseResult(out)
	return r, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// server returns a server with a volume that is filled.
func (m *saturator) server(ctx context.Context, key saturationServer) (*server, error) {
	if s := m.servers[key]; s != nil {
		return s, nil
	}
	dir, err := os.MkdirTemp(m.options.work, "saturation-")
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	place := *m.options
	if key.threads > 1 {
		place.Server = fmt.Sprintf("%s,%d", place.Server, place.Client)
	}
	s, err := startLunar(ctx, &place, serving{work: dir, files: dir, units: 1, bytes: saturationMiB << 20, block: logicalBlockKiB << 10,
		yaml: func(port int, _ []string) string { return m.yaml(key, port) }})
	if s != nil {
		m.servers[key] = s
	}
	if err == nil {
		err = m.client.fill(ctx, s, 0)
	}
	return s, err
}

const saturationYAML = `server: {threads: %d, real-time: %t}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  ram: {type: ram, size: %dMiB, block-size: 4096, threads: %d}
targets:
  %s: {portal-groups: [bench], auth-group: none, luns: [{lun: 0, volume: ram}]}
`

// yaml is a server's configuration.
func (m *saturator) yaml(key saturationServer, port int) string {
	text := fmt.Sprintf(saturationYAML, key.threads, key.threads > 1, port, saturationMiB, key.threads, targetName)
	if !key.ruled {
		return text
	}
	text += "qos:\n"
	if key.turn != "" {
		text += "  turn: " + key.turn + "\n"
	}
	return text + "  rules:\n" + saturationRules(m.loads)
}

// openSaturator prepares the measurement.
func openSaturator(o *options, p plan) *saturator {
	return &saturator{options: o, client: o.client(p.adjusted(o)), loads: saturations(), servers: map[saturationServer]*server{}}
}
