package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// cacheCommand compares hits in lunar's cache with C tgt on the kernel's page
// cache, and measures the parts of the cache.
type cacheCommand struct {
	Mode     string `arg:"" optional:"" default:"full" enum:"quick,full" help:"quick: about a minute; full: about four, for the record."`
	Document string `default:"docs/reports/performance-cache.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Disk     string `default:"/var/tmp" type:"existingdir" help:"Directory on a real disk for lunar's volumes, which are opened with O_DIRECT."`
	TgtFiles string `default:"/dev/shm" type:"existingdir" help:"Directory for C tgt's volumes; one on a disk costs it writing back."`
	Tests    string `required:"" type:"existingdir" help:"Directory of cache.test, tier.test and segment.test, made by go test -c."`
	Parts    bool   `default:"true" negatable:"" help:"Measure the parts of the cache too."`
}

var cachePlans = map[string]plan{
	"quick": {3, 200 * time.Millisecond, 500 * time.Millisecond, 2},
	"full":  {5, 300 * time.Millisecond, 1500 * time.Millisecond, 2},
}

// The volumes of the comparison.
const (
	throughVolume = iota
	backVolume
)

var cacheMatrix = []workload{
	{"perf-read-32", "4 KiB random read, depth 32, iscsi-perf", "randread", 4, 32, 1, throughVolume, iscsiPerf, false},
	{"read-32", "4 KiB random read, depth 32, tgtload", "randread", 4, 32, 1, throughVolume, tgtload, false},
	{"perf-read-256k", "256 KiB sequential read, depth 8, iscsi-perf", "read", 256, 8, 1, throughVolume, iscsiPerf, false},
	{"read-256k", "256 KiB sequential read, depth 8, tgtload", "read", 256, 8, 1, throughVolume, tgtload, false},
	{"back-write-32", "4 KiB random write, depth 32, write: back, tgtload", "randwrite", 4, 32, 1, backVolume, tgtload, false},
}

var cacheRequirements = []requirement{
	{"perf-read-32", "4 KiB random read, depth 32, iscsi-perf, IOPS", iops, "%.0f", 2, false, false},
	{"perf-read-32", "server CPU per 4 KiB read, depth 32, iscsi-perf, µs", serverCPU, "%.2f", 0.2, true, false},
	{"read-32", "4 KiB random read, depth 32, tgtload, IOPS", iops, "%.0f", 2, false, false},
	{"read-32", "server CPU per 4 KiB read, depth 32, tgtload, µs", serverCPU, "%.2f", 0.2, true, false},
	{"perf-read-256k", "256 KiB read, depth 8, iscsi-perf, MB/s", megabytes, "%.0f", 1.5, false, false},
	{"read-256k", "256 KiB read, depth 8, tgtload, MB/s", megabytes, "%.0f", 1.5, false, false},
	{"back-write-32", "4 KiB random write, depth 32, write: back, IOPS", iops, "%.0f", 2, false, false},
}

// Run measures and writes the document.
func (c *cacheCommand) Run(ctx context.Context, o *options) error {
	workloads, err := selected(cacheMatrix, o.Only)
	if err != nil {
		return err
	}
	order, sections := []string{"table", "profile"}, map[string]string{}
	if err := c.compare(ctx, o, workloads, sections); err != nil {
		return err
	}
	if c.Parts && len(o.Only) == 0 {
		order = append(order, "clock")
		sections["clock"] = clockText(coreClock())
		for _, p := range parts {
			if sections[p.section], err = c.part(ctx, o, p); err != nil {
				return err
			}
			order = append(order, p.section)
		}
	}
	return o.record(c.Document, order, sections)
}

// compare fills the sections of the whole servers.
func (c *cacheCommand) compare(ctx context.Context, o *options, workloads []workload, sections map[string]string) error {
	v, remove, err := c.serving()
	defer remove()
	if err != nil {
		return err
	}
	servers, err := startServers(ctx, o, v)
	defer stopServers(servers)
	if err != nil {
		return err
	}
	client := o.client(cachePlans[c.Mode].adjusted(o))
	if err := client.warmUp(ctx, servers); err != nil {
		return err
	}
	before, err := servers[lunar].diskReads()
	if err != nil {
		return err
	}
	results, err := client.measure(ctx, servers, workloads)
	if err != nil {
		return err
	}
	after, err := servers[lunar].diskReads()
	if err != nil {
		return err
	}
	files := fmt.Sprintf("lunar's files in %s with O_DIRECT behind a cache that holds all of them, C tgt's in %s", c.Disk, c.TgtFiles)
	sections["table"] = machine(o, client.plan, results, files) +
		fmt.Sprintf("While this was measured, lunar read %d bytes from the disk.\n\n", after-before) +
		requirementTable(cacheRequirements, results) + detailTable(results, workloads)
	sections["profile"] = o.profiled(ctx, client, servers[lunar], cacheMatrix[0])
	return nil
}

// serving makes directories for the servers, to be removed at the end, also on
// failure.
func (c *cacheCommand) serving() (v serving, remove func(), err error) {
	v = serving{volumes: 2, bytes: volumeBytes, block: logicalBlockKiB << 10, yaml: cacheYAML}
	var made []string
	remove = func() {
		for _, dir := range made {
			_ = os.RemoveAll(dir)
		}
	}
	for _, d := range []struct {
		at   *string
		base string
	}{{&v.work, "/dev/shm"}, {&v.files[tgt], c.TgtFiles}, {&v.files[lunar], c.Disk}} {
		if *d.at, err = os.MkdirTemp(d.base, "lunar-bench-"); err != nil {
			return v, remove, fmt.Errorf("work directory: %w", err)
		}
		made = append(made, *d.at)
	}
	return v, remove, nil
}

// cacheConfig leaves dirty data to age for a second only, so that writing them
// to the disk is part of what is measured.
const cacheConfig = `cache:
  size: 3GiB
  segment: %q
portal-groups:
  bench:
    tag: 1
    listen: ["127.0.0.1:%d"]
volumes:
  through:
    type: file
    path: %q
    size: 1GiB
    block-size: 4096
    direct: true
    cache: true
    write: through
  back:
    type: file
    path: %q
    size: 1GiB
    block-size: 4096
    direct: true
    cache: {flush-age: 1s}
    write: back
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - {lun: 0, volume: through}
      - {lun: 1, volume: back}
`

func cacheYAML(port int, work string, files []string) string {
	return fmt.Sprintf(cacheConfig, filepath.Join(work, "segment"), port, files[throughVolume], files[backVolume], targetName)
}
