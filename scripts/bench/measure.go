package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"lunar/internal/initiator/load"
)

// client runs tgtload, pinned.
type client struct {
	path   string
	limit  *loopServer // nil: is not measured
	cpu    int
	place  []string
	before []string // of a command line that has to run while servers and client use all of their CPUs
	plan   plan
}

// samples holds the results of each workload: one pair, by server, per repeat.
type samples map[string][]pair

// pair is one repeat: both servers' results, and the larger share of the
// machine that others took meanwhile.
type pair struct {
	result  [contenders]load.Result
	foreign float64
}

// measure runs the matrix as often as planned, both servers in turns; which of
// them goes first alternates too.
func (c client) measure(ctx context.Context, servers []*server, workloads []workload) (samples, error) {
	s := samples{}
	for repeat := range c.plan.repeats {
		for _, w := range workloads {
			p, err := c.quietPair(ctx, servers, w, repeat%2)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			s[w.name] = append(s[w.name], p)
			fmt.Fprintf(os.Stderr, "bench: repeat %d of %d, %s: tgt %.0f, lunar %.0f IOPS, others %.0f %%\n",
				repeat+1, c.plan.repeats, w.name, p.result[tgt].IOPS, p.result[lunar].IOPS, 100*p.foreign)
		}
	}
	return s, nil
}

// quietPair repeats a pair until nobody disturbed it, and keeps the quietest.
func (c client) quietPair(ctx context.Context, servers []*server, w workload, first int) (pair, error) {
	var best pair
	for i := range c.plan.tries {
		p, err := c.pair(ctx, servers, w, first)
		if err != nil {
			return p, err
		}
		if i == 0 || p.foreign < best.foreign {
			best = p
		}
		if best.foreign < quietBelow {
			break
		}
	}
	return best, nil
}

func (c client) pair(ctx context.Context, servers []*server, w workload, first int) (pair, error) {
	var p pair
	if c.limit != nil && w.limited {
		r, others, err := c.limit.run(ctx, c, w)
		if err != nil {
			return p, fmt.Errorf("loopback limit: %w", err)
		}
		p.result[limit], p.foreign = *r, others
	}
	for i := range servers {
		n := (i + first) % len(servers)
		r, others, err := c.run(ctx, servers[n], w, c.plan.runtime)
		if err != nil {
			return p, fmt.Errorf("%s: %w", servers[n].name, err)
		}
		p.result[n] = *r
		p.foreign = max(p.foreign, others)
		if w.volume == backVolume {
			if err := servers[n].settle(ctx); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// run is one measurement; others is the share of the machine that was taken by
// neither side.
func (c client) run(ctx context.Context, s *server, w workload, runtime time.Duration) (r *load.Result, others float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, runtime+c.plan.warmup+20*time.Second)
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

func iops(r load.Result) float64      { return r.IOPS }
func megabytes(r load.Result) float64 { return r.BytesPerSecond / 1e6 }
func serverCPU(r load.Result) float64 { return r.ServerCPU.PerIO }

func clientBusy(r load.Result) float64  { return 100 * r.ClientBusy }
func latencyMean(r load.Result) float64 { return r.Latency.Mean }
func p50(r load.Result) float64         { return r.Latency.P50 }
func p99(r load.Result) float64         { return r.Latency.P99 }
func fairness(r load.Result) float64    { return r.Connections.Min / r.Connections.Mean }

// values returns a metric of one server over the repeats.
func values(pairs []pair, server int, m metric) []float64 {
	var v []float64
	for _, p := range pairs {
		v = append(v, m(p.result[server]))
	}
	return v
}

// ratios returns lunar's part of another one's, pair by pair.
func ratios(pairs []pair, other int, m metric) []float64 {
	var v []float64
	for _, p := range pairs {
		v = append(v, m(p.result[lunar])/m(p.result[other]))
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
