package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
)

// How much is held at a time.
const (
	scaleUnits       = 256
	scaleConnections = 10000 // that are tried besides
)

var scaleSessions = []int{1, 100, 1000}

// scaleConfig has the volumes to come.
const scaleConfig = `server:
  threads: 1
  limits: {sessions: 1200, queue-depth: 128}
portal-groups:
  local: {tag: 1, listen: ["127.0.0.1:0"]}
`

// scaleColumns are the figures of the table, in order.
var scaleColumns = []string{"start, ms", "memory, MiB", "memory per session, KiB", "logins/s", "commands/s", "Jain's index", "slowest to fastest", "p50, ms", "p99, ms", "longest, ms",
	"connections that were open at a time", "p99 meanwhile, ms", "sessions lost"}

// scale measures servers with more and more sessions.
func (r *runCommand) scale(dir string) error {
	for _, n := range scaleSessions {
		name := fmt.Sprintf("scale-%d", n)
		found, err := r.scaleTo(filepath.Join(dir, name), n)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.tell(attack{name: name}, found); err != nil {
			return err
		}
	}
	return nil
}

// scaleTo measures one with so many sessions.
func (r *runCommand) scaleTo(dir string, n int) (found outcome, err error) {
	config := scaleConfig + "volumes:\n"
	luns := ""
	for i := range scaleUnits {
		config += fmt.Sprintf("  v%d: {type: ram, size: 1MiB}\n", i)
		luns += fmt.Sprintf("{lun: %d, volume: v%d}, ", i, i)
	}
	config += "targets:\n  " + openTarget + ": {auth-group: none, luns: [" + strings.TrimSuffix(luns, ", ") + "]}\n"
	d, err := daemon.New(r.Tgtd, dir, config)
	if err != nil {
		return found, err
	}
	server, _ := canary.CPUs()
	d.Prefix = canary.Pinned(server)
	begin := time.Now()
	portal, err := d.Start()
	if err != nil {
		return found, err
	}
	s := &site{Server: d, scene: scene{Portal: portal}}
	f := figures{"start, ms": float64(time.Since(begin).Milliseconds())}
	idle := s.memory()
	err = s.crowded(r, f, n, idle)
	return outcome{Figures: f, Failed: s.stop()}, err
}

// crowded fills the figures in.
func (s *site) crowded(r *runCommand, f figures, n int, idle float64) error {
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	begin := time.Now()
	conns, err := s.many(ctx, n)
	if err != nil {
		return err
	}
	f["logins/s"] = math.Round(float64(n) / time.Since(begin).Seconds())
	alone, rates, err := s.share(ctx, conns, r.Seconds)
	if err != nil {
		return err
	}
	f["memory, MiB"] = math.Round(s.memory() / (1 << 20))
	f["memory per session, KiB"] = math.Round((s.memory() - idle) / float64(n) / 1024)
	f["commands/s"], f["p50, ms"], f["p99, ms"], f["longest, ms"] = math.Round(alone.IOPS), hundredths(alone.Latency.P50/1e3), hundredths(alone.Latency.P99/1e3), hundredths(alone.Latency.Max/1e3)
	f["Jain's index"] = math.Round(1000*jain(rates)) / 1000
	f["slowest to fastest"] = hundredths(ratio(alone.Connections.Min, alone.Connections.Max))
	admitted := make(chan float64, 1)
	go func() { admitted <- s.tried(ctx, scaleConnections) }()
	meanwhile, _, err := s.share(ctx, conns, r.Seconds)
	if err != nil {
		return err
	}
	f["p99 meanwhile, ms"] = hundredths(meanwhile.Latency.P99 / 1e3)
	f["connections that were open at a time"] = <-admitted
	for _, c := range conns {
		if c.Ping(nil) != nil {
			f["sessions lost"]++
		}
	}
	return nil
}

// many are sessions from as many addresses as there are, 16 logins at a time.
func (s *site) many(ctx context.Context, n int) ([]*initiator.Conn, error) {
	conns, errs := make([]*initiator.Conn, n), make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				name := fmt.Sprintf("iqn.2026-11.example.host:%d", i)
				conns[i], errs[i] = readyAt(ctx, manyAddresses(i), s.scene.Portal, as(name, openTarget, nil, uint32(i)), uint64(i%scaleUnits))
			}
		})
	}
	all.Wait()
	return conns, errors.Join(errs...)
}

// share has all sessions read and write as fast as they can, one command at a time, and
// returns the rate of each.
func (s *site) share(ctx context.Context, conns []*initiator.Conn, seconds float64) (*load.Result, []float64, error) {
	rates := make([]float64, len(conns))
	_, cpu := canary.CPUs()
	result, err := load.Run(ctx, conns, load.Unit{BlockSize: 512, Blocks: 2048, Units: scaleUnits}, load.Workload{
		Depth: 1, Sizes: []load.Share{{Bytes: 4096, Weight: 1}}, ReadPercent: 70, Random: true, CPU: cpu,
		Runtime: time.Duration(seconds * float64(time.Second)),
		Observe: func(connection int, _, _ int64) { rates[connection]++ },
	})
	return result, rates, err
}

// jain is the index of fairness by R. Jain et al. (1984): 1 if all have the same, 1/n if
// one has all.
func jain(rates []float64) float64 {
	var sum, squares float64
	for _, x := range rates {
		sum += x
		squares += x * x
	}
	return ratio(sum*sum, float64(len(rates))*squares)
}

// tried opens connections that say nothing, and returns how many of them the server
// had at a time, at most.
func (s *site) tried(ctx context.Context, n int) float64 {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var next, open, most atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n && ctx.Err() == nil; i = int(next.Add(1)) {
				c, err := dialFrom(ctx, manyAddresses(i), s.scene.Portal)
				if err != nil {
					continue
				}
				most.Store(max(most.Load(), open.Add(1)))
				go func() {
					defer c.Close()
					_, _ = c.Read(make([]byte, 1)) // until the server closes it
					open.Add(-1)
				}()
			}
		})
	}
	all.Wait()
	return float64(most.Load())
}
