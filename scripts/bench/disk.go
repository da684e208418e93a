package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// diskCommand compares whole targets on a disk, with O_DIRECT.
type diskCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: a minute and a half; full: for the record."`
	Document string `default:"docs/reports/performance-disk.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Disk     string `default:"/var/tmp" type:"existingdir" help:"Directory on the disk. Three files of 2 GiB are made there."`
}

var diskPlans = map[string]plan{
	"quick": {1, 200 * time.Millisecond, 300 * time.Millisecond, 1},
	"full":  {4, 200 * time.Millisecond, 600 * time.Millisecond, 2},
}

const diskBytes = 2 << 30

var diskPeers = []string{fioName, spdkName, tgtName}

var onDisk = comparison{
	workloads: diskMatrix(),
	ours:      []string{lunarAsleep, lunarName},
	peers:     diskPeers,
	enough:    map[string]float64{fioName: 0.95},
}

var throughCache = comparison{workloads: cachedMatrix, ours: []string{lunarName, lunarCached}, peers: diskPeers}

// Run measures and writes the document.
func (c *diskCommand) Run(ctx context.Context, o *options) error {
	s, err := readSamples(o.Samples)
	if err != nil {
		return err
	}
	workloads, err := selected(append(diskMatrix(), cachedMatrix...), o.Only)
	if err != nil {
		return err
	}
	files, err := os.MkdirTemp(c.Disk, "lunar-bench-")
	if err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	defer os.RemoveAll(files)
	f := &field{}
	defer f.stop()
	if err := f.startDisk(ctx, o, files); err != nil {
		return err
	}
	client := o.client(diskPlans[c.Mode].adjusted(o))
	for _, w := range workloads {
		in := onDisk
		if w.span > 0 {
			in = throughCache
		}
		err = errors.Join(err, client.measure(ctx, f.named(slices.Concat(in.peers, in.ours)...), []workload{w}, s))
	}
	if err := errors.Join(err, s.write(o.Samples)); err != nil {
		return err
	}
	titles := fmt.Sprintf("2 GiB in each volume, files in %s with O_DIRECT", c.Disk)
	return o.record(c.Document, []string{"disk", "cache"}, map[string]string{
		"disk":  machine(o, client.plan, s, titles) + onDisk.missing(f, s) + onDisk.table(s),
		"cache": fmt.Sprintf("The same run; a cache of %d MiB, `write: back`, what is dirty is written after a second or when it fills half of the cache.\n\n", diskCache) + throughCache.table(s),
	})
}

// The volumes' files; those that are not lunar's have the first one of it, in turns.
const (
	directFile = iota
	cachedFile
	asleepFile
)

// startDisk starts all.
func (f *field) startDisk(ctx context.Context, o *options, files string) error {
	v := serving{work: o.work, files: files, volumes: 3, bytes: diskBytes, block: logicalBlockKiB << 10, yaml: func(port int, files []string) string {
		return fmt.Sprintf(diskConfig, diskCache, filepath.Join(o.work, "segment"), port, files[directFile], files[cachedFile], targetName)
	}}
	s, err := startLunar(ctx, o, v)
	f.enter(s, err, contender{name: lunarName, volume: directFile}, contender{name: lunarCached, volume: cachedFile, back: true})
	if err != nil {
		return err
	}
	asleep := v
	if asleep.work = filepath.Join(o.work, "asleep"); os.Mkdir(asleep.work, 0o700) != nil {
		return fmt.Errorf("work directory %s", asleep.work)
	}
	asleep.yaml = func(port int, files []string) string {
		return fmt.Sprintf(asleepConfig, port, files[asleepFile], targetName)
	}
	s, err = startLunar(ctx, o, asleep)
	f.enter(s, err, contender{name: lunarAsleep})
	if err != nil {
		return err
	}
	s, err = startTgt(ctx, o, v, true)
	f.enter(s, err, contender{name: tgtName})
	file := v.paths()[directFile]
	f.enter(&server{name: fioName, size: v.bytes}, nil, contender{name: fioName, tool: fioDirect(file)})
	s, err = startSPDK(ctx, o, v, call{"bdev_aio_create", object{"name": spdkBdev, "filename": file, "block_size": v.block}}, 0)
	f.enter(s, err, contender{name: spdkName})
	return nil
}

const diskConfig = `cache: {size: %dMiB, segment: %q}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  direct: {type: file, path: %q, block-size: 4096, direct: true}
  cached: {type: file, path: %q, block-size: 4096, direct: true, cache: {flush-age: 1s}, write: back}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - {lun: 0, volume: direct}
      - {lun: 1, volume: cached}
`

const asleepConfig = `server: {poll: "off"}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  direct: {type: file, path: %q, block-size: 4096, direct: true}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns: [{lun: 0, volume: direct}]
`
