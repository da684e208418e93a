package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lunar/control"
	"lunar/internal/initiator/load"
)

// scalingCommand shows that one core serves many logical units and connections as
// fast as one, and a large cache and many sessions without pauses.
type scalingCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: about a minute; full: about three, for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var scalingPlans = map[string]plan{
	"quick": {3, 80 * time.Millisecond, 150 * time.Millisecond, 1},
	"full":  {9, 100 * time.Millisecond, 250 * time.Millisecond, 1},
}

// spreads are the loads, each connection of depth 32.
var spreads = []spreadLoad{
	{1, 1, 1, 8}, {1, 1, 1, 64}, {1, 1, 8, 8}, {1, 1, 8, 64}, {1, 1, 64, 64}, {1, 1, 256, 256},
	{2, 2, 1, 1}, {2, 2, 8, 8}, {1, 1, 1, 1000},
}

const (
	spreadUnits = 256
	spreadFew   = 8
	spreadBytes = 512 << 20 // that each load reads, over all its logical units
	spreadMost  = 500       // connections that log in in each repeat: more take half a minute, once
)

// Run measures and writes the document.
func (k *scalingCommand) Run(ctx context.Context, o *options) error {
	client := o.client(scalingPlans[k.Mode].adjusted(o))
	var order []string
	sections := map[string]string{}
	if wanted(o, "spread") {
		rates, err := k.spread(ctx, o, client, o.work)
		if err != nil {
			return err
		}
		order, sections["scaling"] = append(order, "scaling"), machine(o, client.plan, nil, "files in /dev/shm behind the cache")+rates
	}
	if wanted(o, "sessions") {
		memory, err := k.sessions(ctx, o, client, o.work)
		if err != nil {
			return err
		}
		order, sections["sessions"] = append(order, "sessions"), memory
	}
	if wanted(o, "crowd") {
		crowd, err := k.crowd(ctx, o, client, o.work)
		if err != nil {
			return err
		}
		order, sections["crowd"] = append(order, "crowd"), crowd
	}
	return store(k.Document, order, sections)
}

// wanted tells whether a part of a command is measured.
func wanted(o *options, name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }

const spreadYAML = `server: {threads: %d, limits: {sessions: 2048}}
cache: {size: %dMiB, segment: none}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%%d"]}
volumes:
%%stargets:
  %%s:
    portal-groups: [bench]
    auth-group: none
    luns:
%%s`

// startSpread starts a server with so many event threads and logical units.
func (k *scalingCommand) startSpread(ctx context.Context, o *options, dir, name string, threads, units, cacheMiB int) (*server, error) {
	dir, err := k.state(dir, name)
	if err != nil {
		return nil, err
	}
	with := *o
	if threads > 1 {
		with.Server = o.Server + "," + strconv.Itoa(o.Client)
	}
	return startLunar(ctx, &with, serving{work: dir, files: dir, volumes: units, bytes: spreadBytes, block: logicalBlockKiB << 10, holes: true,
		yaml: func(port int, files []string) string {
			var volumes, luns strings.Builder
			for i, file := range files {
				fmt.Fprintf(&volumes, "  v%d: {type: file, path: %q, block-size: 4096, cache: true}\n", i, file)
				fmt.Fprintf(&luns, "      - {lun: %d, volume: v%d}\n", i, i)
			}
			return fmt.Sprintf(fmt.Sprintf(spreadYAML, threads, cacheMiB), port, volumes.String(), targetName, luns.String())
		}})
}

// spread measures all loads in turns, as often as planned.
func (k *scalingCommand) spread(ctx context.Context, o *options, c client, dir string) (string, error) {
	servers := map[spreadServer]*server{}
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, like := range []spreadServer{{1, spreadFew}, {1, spreadUnits}, {2, spreadFew}} {
		s, err := k.startSpread(ctx, o, dir, fmt.Sprintf("spread%d-%d", like.threads, like.units), like.threads, like.units, 3*like.units+1280)
		if s != nil {
			servers[like] = s
		}
		if err != nil {
			return "", err
		}
	}
	for _, l := range append(spreads, spreadLoad{1, 1, 1, 1}) {
		w := l.workload()
		w.rw, w.kib, w.depth, w.connections = "read", 256, 8, l.units
		if _, _, err := c.run(ctx, servers[l.server()], w, time.Second); err != nil {
			return "", err
		}
	}
	measured := make([]spreadRow, len(spreads))
	for repeat := range c.plan.repeats {
		for i, l := range spreads {
			if repeat > 0 && l.connections > spreadMost {
				continue
			}
			if err := c.compareSpread(ctx, servers, l, &measured[i]); err != nil {
				return "", fmt.Errorf("%d connections, %d logical units: %w", l.connections, l.units, err)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: scaling, repeat %d of %d\n", repeat+1, c.plan.repeats)
	}
	return spreadTable(measured), nil
}

// spreadLoad is one load.
type spreadLoad struct{ threads, clients, units, connections int }

// spreadServer has so many event threads and logical units. A session opens all units
// of its target, so those of few units log in to a server that has few.
type spreadServer struct{ threads, units int }

func (l spreadLoad) server() spreadServer {
	if l.units > spreadFew {
		return spreadServer{l.threads, spreadUnits}
	}
	return spreadServer{l.threads, spreadFew}
}

func (l spreadLoad) workload() workload {
	return workload{rw: "randread", kib: 4, depth: 32, connections: l.connections / l.clients,
		tool: tgtload.with("--luns", strconv.Itoa(l.units), "--size", strconv.Itoa(spreadBytes/l.units))}
}

// spreadRow is what was measured of a load, and of one connection beside it: by
// repeat. The speed of a virtual machine changes from second to second.
type spreadRow struct {
	rates, parts, costs, costParts []float64
	busy                           []float64 // of the client, in percent
}

// compareSpread measures a load right after one connection to one logical unit.
func (c client) compareSpread(ctx context.Context, servers map[spreadServer]*server, l spreadLoad, row *spreadRow) error {
	one, err := c.spreadRate(ctx, servers[spreadServer{1, spreadFew}], spreadLoad{1, 1, 1, 1})
	if err != nil {
		return err
	}
	r, err := c.spreadRate(ctx, servers[l.server()], l)
	if err != nil {
		return err
	}
	row.rates, row.parts = append(row.rates, r.IOPS), append(row.parts, r.IOPS/one.IOPS)
	row.costs, row.costParts = append(row.costs, r.ServerCPU.PerIO), append(row.costParts, r.ServerCPU.PerIO/one.ServerCPU.PerIO)
	row.busy = append(row.busy, clientBusy(*r))
	return nil
}

// spreadRate has as many clients at once as the load, the first on the client's CPU,
// and returns what all of them reached.
func (c client) spreadRate(ctx context.Context, s *server, l spreadLoad) (*load.Result, error) {
	l.connections = max(l.connections, l.clients)
	results, errs := make([]*load.Result, l.clients), make([]error, l.clients)
	var running sync.WaitGroup
	for i := range l.clients {
		running.Go(func() {
			on := c
			on.cpu = (c.cpu + i) % runtime.NumCPU()
			on.place = append([]string{"taskset", "-c", strconv.Itoa(on.cpu)}, c.place[3:]...)
			w := l.workload()
			w.tool = w.tool.with("--initiator", fmt.Sprintf("iqn.2026-11.example.bench:client%d", i))
			results[i], _, errs[i] = on.run(ctx, s, w, c.plan.runtime)
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all, cpu := *results[0], load.CPU{}
	for i, r := range results {
		cpu.Seconds = max(cpu.Seconds, r.ServerCPU.Seconds) // each counts the whole server
		if i > 0 {
			all.IOPS, all.ClientBusy = all.IOPS+r.IOPS, max(all.ClientBusy, r.ClientBusy)
		}
	}
	cpu.PerIO = cpu.Seconds / all.Seconds * 1e6 / all.IOPS
	all.ServerCPU = &cpu
	return &all, nil
}

// spreadTable compares each load with one connection to one logical unit.
func spreadTable(measured []spreadRow) string {
	var t strings.Builder
	t.WriteString("4 KiB random reads, depth 32 on each connection, of 512 MiB over all logical units. The ratios are medians of those to one " +
		"client with one connection to one logical unit of one event thread, each measured right before.\n\n" +
		"| event threads | clients | logical units | connections | IOPS | of one connection | server CPU per I/O, µs | of one connection | ≤ 1.1 | client busy, % |\n" +
		"|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|\n")
	for i, l := range spreads {
		row := &measured[i]
		cost := median(row.costParts)
		fmt.Fprintf(&t, "| %d | %d | %d | %d | %.0f | %.2f | %.2f | %.2f | %s | %.0f |\n", l.threads, l.clients, l.units, max(l.connections, l.clients), median(row.rates), median(row.parts),
			median(row.costs), cost, yes(cost <= 1.1), median(row.busy))
	}
	return t.String()
}

// sessions measures the memory that idle sessions of one connection take.
func (k *scalingCommand) sessions(ctx context.Context, o *options, c client, dir string) (string, error) {
	s, err := k.startSpread(ctx, o, dir, "sessions", 1, 1, 1280)
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return "", err
	}
	api, err := control.Dial(filepath.Join(dir, "sessions", control.SocketName))
	if err != nil {
		return "", fmt.Errorf("control socket: %w", err)
	}
	defer api.Close()
	var t strings.Builder
	t.WriteString("| idle sessions | memory of the server, MiB more | per session, KiB |\n|--:|--:|--:|\n")
	for _, count := range []int{100, 1000} {
		before, err := s.anonymous()
		if err != nil {
			return "", err
		}
		end, err := c.gatherCrowd(ctx, s, count, "0.01", api)
		var after int64
		if err == nil {
			after, err = s.anonymous()
		}
		if end != nil {
			end()
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&t, "| %d | %.1f | %.1f |\n", count, float64(after-before)/1024, float64(after-before)/float64(count))
	}
	return t.String(), nil
}

var rssAnon = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)

// anonymous is the server's memory beside mapped files, in KiB.
func (s *server) anonymous() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", s.name, err)
	}
	found := rssAnon.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("memory of %s: no RssAnon in its status", s.name)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// state is the directory that a server keeps its state and its control socket in.
func (k *scalingCommand) state(dir, name string) (string, error) {
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("work directory: %w", err)
	}
	return dir, nil
}
