package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/initiator/load"
)

// client drives servers, pinned.
type client struct {
	path   string // of tgtload
	cpu    int
	place  []string
	before []string // of a command line that has to run while servers and client use all of their CPUs
	plan   plan
}

// samples holds the rounds of each workload.
type samples map[string][]round

// round is one repeat of a workload: results by contender, and the largest share of
// the machine that others took meanwhile.
type round struct {
	Results map[string]load.Result
	Foreign float64
}

// readSamples takes what earlier runs have measured.
func readSamples(path string) (samples, error) {
	s := samples{}
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	return s, nil
}

func (s samples) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}

// measure adds rounds of the workloads as often as planned, all contenders in turns;
// which of them goes first alternates too.
func (c client) measure(ctx context.Context, contenders []contender, workloads []workload, s samples) error {
	for repeat := range c.plan.repeats {
		for _, w := range workloads {
			r, err := c.quietRound(ctx, contenders, w, repeat)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			s[w.name] = append(s[w.name], r)
			fmt.Fprintf(os.Stderr, "bench: repeat %d of %d, %s: %s\n", repeat+1, c.plan.repeats, w.name, r.line(contenders))
		}
	}
	return nil
}

func (r round) line(contenders []contender) string {
	var b strings.Builder
	for _, k := range contenders {
		if result, has := r.Results[k.name]; has {
			fmt.Fprintf(&b, "%s %.0f, ", k.name, result.IOPS)
		}
	}
	return b.String() + fmt.Sprintf("others %.0f %%", 100*r.Foreign)
}

// quietRound repeats a round until nobody disturbed it, and keeps the quietest.
func (c client) quietRound(ctx context.Context, contenders []contender, w workload, first int) (round, error) {
	var best round
	for i := range c.plan.tries {
		r, err := c.round(ctx, contenders, w, first)
		if err != nil {
			return r, err
		}
		if i == 0 || r.Foreign < best.Foreign {
			best = r
		}
		if best.Foreign < quietBelow {
			break
		}
	}
	return best, nil
}

func (c client) round(ctx context.Context, contenders []contender, w workload, first int) (round, error) {
	r := round{Results: map[string]load.Result{}}
	restore, err := congest(w.congestion)
	if err != nil {
		return r, err
	}
	defer restore()
	for i := range contenders {
		k := contenders[(i+first)%len(contenders)]
		if k.absent != "" || k.tool != nil && !k.tool.replaces(w) {
			continue
		}
		result, others, err := c.drive(ctx, k, w)
		if err != nil {
			return r, fmt.Errorf("%s: %w", k.name, err)
		}
		r.Results[k.name], r.Foreign = *result, max(r.Foreign, others)
	}
	return r, nil
}

// drive puts a workload on a contender, alone on the machine.
func (c client) drive(ctx context.Context, k contender, w workload) (r *load.Result, others float64, err error) {
	w.volume = k.volume
	if k.tool != nil {
		w.tool = *k.tool
	}
	if err := k.server.wake(); err != nil {
		return nil, 0, err
	}
	if w.prepared && k.back {
		before := w
		before.rw, before.kib, before.depth = "read", 256, 8
		if _, _, err := c.run(ctx, k.server, before, time.Second); err != nil {
			return nil, 0, err
		}
	}
	r, others, err = c.run(ctx, k.server, w, c.plan.runtime)
	if err == nil && k.back && !strings.HasSuffix(w.rw, "read") {
		err = k.server.settle(ctx)
	}
	return r, others, errors.Join(err, k.server.rest())
}

// wake continues a server that spins.
func (s *server) wake() error {
	if s.spins {
		return s.cmd.Process.Signal(unix.SIGCONT)
	}
	return nil
}

// rest stops a server that spins, for as long as others are measured.
func (s *server) rest() error {
	if s.spins {
		return s.cmd.Process.Signal(unix.SIGSTOP)
	}
	return nil
}

// run is one measurement; others is the share of the machine that was taken by
// neither side.
func (c client) run(ctx context.Context, s *server, w workload, runtime time.Duration) (r *load.Result, others float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, runtime+c.plan.warmup+20*time.Second+time.Duration(w.connections)*50*time.Millisecond) // logins take their time
	defer cancel()
	from, err := look(s)
	if err != nil {
		return nil, 0, err
	}
	line := slices.Concat(c.place, w.tool.arguments(c, s, w, runtime))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %s", line, err, bytes.TrimSpace(stderr.Bytes()))
	}
	to, err := look(s)
	if err != nil {
		return nil, 0, err
	}
	client := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r, err = w.tool.result(out, w, usage{runtime, to.server - from.server, client})
	return r, foreign(from, to, client), err
}

// metric is one number of a result.
type metric func(load.Result) float64

func iops(r load.Result) float64       { return r.IOPS }
func megabytes(r load.Result) float64  { return r.BytesPerSecond / 1e6 }
func serverCPU(r load.Result) float64  { return r.ServerCPU.PerIO }
func clientBusy(r load.Result) float64 { return 100 * r.ClientBusy }
func p50(r load.Result) float64        { return r.Latency.P50 }
func p99(r load.Result) float64        { return r.Latency.P99 }
func fairness(r load.Result) float64   { return r.Connections.Min / r.Connections.Mean }

// values returns a metric of one contender over the rounds.
func values(rounds []round, name string, m metric) (v []float64) {
	for _, r := range rounds {
		if result, has := r.Results[name]; has {
			v = append(v, m(result))
		}
	}
	return v
}

// ratios returns one's part of another one's, round by round.
func ratios(rounds []round, mine, other string, m metric) (v []float64) {
	for _, r := range rounds {
		a, has := r.Results[mine]
		b, had := r.Results[other]
		if has && had {
			v = append(v, m(a)/m(b))
		}
	}
	return v
}

// median of an even number of values is the mean of the two in the middle.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
