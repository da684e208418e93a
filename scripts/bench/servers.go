package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// serversCommand compares whole targets in memory.
type serversCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: short runs; full: for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var serversPlans = map[string]plan{
	"quick": {2, 100 * time.Millisecond, 200 * time.Millisecond, 1},
	"full":  {5, 150 * time.Millisecond, 300 * time.Millisecond, 2},
}

var inMemory = comparison{
	workloads: matrix,
	ours:      []string{lunarRAM, lunarCached},
	peers:     []string{echoName, spdkName, tgtName},
	beside:    []string{ringName},
	enough:    map[string]float64{echoName: 0.95},
}

// Run measures and writes the document.
func (c *serversCommand) Run(ctx context.Context, o *options) error {
	s, err := readSamples(o.Samples)
	if err != nil {
		return err
	}
	workloads, err := selected(matrix, o.Only)
	if err != nil {
		return err
	}
	f := &field{}
	defer f.stop()
	v := memory(o, o.work)
	client := o.client(serversPlans[c.Mode].adjusted(o))
	if err := f.startMemory(ctx, o, v, client); err != nil {
		return err
	}
	if err := errors.Join(client.measure(ctx, f.contenders, workloads, s), s.write(o.Samples)); err != nil {
		return err
	}
	cached, titles := f.named(lunarCached)[0].server, fmt.Sprintf("%d MiB of data in each volume; C tgt's and the cached one's files are in /dev/shm", o.Data)
	sections := map[string]string{"table": machine(o, client.plan, s, titles) + inMemory.missing(f, s) + inMemory.table(s)}
	order := []string{"table"}
	if o.Profile && len(o.Only) == 0 {
		order = append(order, "profile")
		for _, name := range []string{"read-32", "write-32"} {
			w, _ := selected(matrix, []string{name}) // it is there
			sections["profile"] += o.profiled(ctx, client, cached, w[0]) + "\n"
		}
	}
	return o.record(c.Document, order, sections)
}

// startMemory starts all. The file of C tgt is that behind lunar's cache.
func (f *field) startMemory(ctx context.Context, o *options, v serving, c client) error {
	s, err := startLunarMemory(ctx, o, v, c)
	f.enter(s, err, contender{name: lunarCached, volume: cachedVolume, back: true}, contender{name: lunarRAM, volume: ramVolume})
	if err != nil {
		return err
	}
	s, err = startTgt(ctx, o, v, false)
	f.enter(s, err, contender{name: tgtName})
	f.startEchoes(o, v)
	s, err = startSPDK(ctx, o, v, call{"bdev_malloc_create", object{"name": spdkBdev, "num_blocks": v.bytes / int64(v.block), "block_size": v.block}}, v.bytes)
	f.enter(s, err, contender{name: spdkName})
	return nil
}

func (f *field) startEchoes(o *options, v serving) {
	program, err := buildEcho(v.work)
	for _, e := range []struct{ name, command string }{{echoName, "serve"}, {ringName, "ring"}} {
		var s *server
		var drive *tool
		if err == nil {
			s, drive, err = startEcho(o, e.name, program, e.command, v.bytes)
		}
		f.enter(s, err, contender{name: e.name, tool: drive})
	}
}

// startLunarMemory starts lunar with volumes that are filled and cached.
func startLunarMemory(ctx context.Context, o *options, v serving, c client) (*server, error) {
	s, err := startLunar(ctx, o, v)
	if err != nil {
		return s, err
	}
	if err := c.warm(ctx, s, cachedVolume); err != nil {
		return s, err
	}
	return s, c.fill(ctx, s, ramVolume)
}

// The volumes of lunar in memory.
const (
	cachedVolume = iota
	ramVolume
)

// memory is a cached volume on a file in dir, and with lunar one in memory.
func memory(o *options, dir string) serving {
	return serving{work: dir, files: dir, volumes: 1, units: 2, bytes: int64(o.Data) << 20, block: logicalBlockKiB << 10, yaml: func(port int, files []string) string {
		return fmt.Sprintf(memoryConfig, o.Data*5/4, filepath.Join(dir, "segment"), port, files[0], o.Data, targetName)
	}}
}

const memoryConfig = `cache:
  size: %dMiB
  segment: %q
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  cached: {type: file, path: %q, block-size: 4096, cache: true, write: back}
  ram: {type: ram, size: %dMiB, block-size: 4096}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - {lun: 0, volume: cached}
      - {lun: 1, volume: ram}
`
