package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/freeport"
	"lunar/internal/initiator/load"
)

// soakCommand keeps lunar under full load for long, checks every byte, and looks
// whether the process grows.
type soakCommand struct {
	Runtime  time.Duration `default:"30m" help:"How long."`
	Every    time.Duration `default:"5s" help:"How often to look at the process."`
	Document string        `default:"docs/reports/soak.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Disk     string        `default:"/var/tmp" type:"existingdir" help:"Directory on a real disk for the cached volumes."`
}

const soakConfig = `server:
  metrics: 127.0.0.1:%d
cache:
  size: 512MiB
  segment: %q
portal-groups:
  bench:
    tag: 1
    listen: ["127.0.0.1:%d"]
volumes:
  file: {type: file, path: %q, size: 1GiB}
  through: {type: file, path: %q, size: 1GiB, direct: true, cache: true, write: through}
  back: {type: file, path: %q, size: 1GiB, direct: true, cache: {flush-age: 1s}, write: back}
  ram: {type: ram, size: 256MiB}
  churn: {type: ram, size: 256MiB}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - {lun: 0, volume: file}
      - {lun: 1, volume: through}
      - {lun: 2, volume: back}
      - {lun: 3, volume: ram}
      - {lun: 4, volume: churn}
`

// soakUnits are the logical units; the last one's clients are killed in the middle.
const (
	soakUnits = 5
	churnUnit = soakUnits - 1
	// soakTurn is how long a client stays logged in.
	soakTurn = 10 * time.Second
)

// soakFiles is how many of the volumes are files.
const soakFiles = 3

// soak is a server under load and what came of it.
type soak struct {
	options *options
	command *soakCommand
	server  *server
	metrics string // URL

	mu     sync.Mutex
	counts soakCounts
}

// soakCounts is what the clients did.
type soakCounts struct {
	commands, bytes, verified, miscompares uint64
	logins, killed                         int
}

// Run serves, loads, looks, judges and writes the document.
func (s *soakCommand) Run(ctx context.Context, o *options) error {
	run := &soak{options: o, command: s}
	remove, err := run.start(ctx)
	defer remove()
	if run.server != nil {
		defer run.server.stop()
	}
	if err != nil {
		return err
	}
	began := time.Now()
	loaded, stop := context.WithTimeout(ctx, s.Runtime)
	defer stop()
	var clients sync.WaitGroup
	failures := make(chan error, soakUnits)
	for unit := range soakUnits {
		clients.Go(func() {
			if err := run.load(loaded, unit); err != nil {
				failures <- err
				stop()
			}
		})
	}
	looks, err := run.watch(loaded)
	stop()
	clients.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	text, grew := soakText(looks, run.counts, time.Since(began))
	if err := o.record(s.Document, []string{"soak"}, map[string]string{"soak": text}); err != nil {
		return err
	}
	return grew
}

// start makes the volumes and starts the server.
func (r *soak) start(ctx context.Context) (remove func(), err error) {
	work := r.options.work
	disk, err := os.MkdirTemp(r.command.Disk, "lunar-soak-")
	remove = func() { os.RemoveAll(disk) }
	if err != nil {
		return remove, fmt.Errorf("directory of volumes: %w", err)
	}
	metrics, err := freeport.Find()
	if err != nil {
		return remove, err
	}
	r.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	v := serving{work: work, files: disk, volumes: soakFiles, units: soakUnits, block: 512, yaml: func(port int, files []string) string {
		return fmt.Sprintf(soakConfig, metrics, filepath.Join(work, "segment"), port, files[0], files[1], files[2], targetName)
	}}
	r.server, err = startLunar(ctx, r.options, v)
	return remove, err
}

// load keeps clients on a unit until ctx ends, one after the other.
func (r *soak) load(ctx context.Context, unit int) error {
	random := rand.New(rand.NewPCG(uint64(unit), 1))
	for turn := 1; ctx.Err() == nil; turn++ {
		line := []string{r.options.Tgtload, "--target", r.server.urls[unit], "--json", "--verify",
			"--initiator", fmt.Sprintf("iqn.2026-11.example.soak:unit%d", unit), "--seed", fmt.Sprint(turn),
			"--cpu", fmt.Sprint(r.options.Client), "--warmup", "0s", "--runtime", soakTurn.String(),
			"--rw", "randrw", "--bs", "4k:70,16k:20,256k:10", "--depth", fmt.Sprint(1 << random.IntN(6)), "--connections", fmt.Sprint(1 + random.IntN(8))}
		if turn%3 == 0 {
			line = append(line, "--digest", "header,data")
		}
		if err := r.turn(ctx, unit, line, random); err != nil {
			return fmt.Errorf("unit %d, turn %d: %w", unit, turn, err)
		}
	}
	return nil
}

// turn runs one client. Those of the last unit are killed somewhere in the middle.
func (r *soak) turn(ctx context.Context, unit int, line []string, random *rand.Rand) error {
	var said strings.Builder
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = &said
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if unit == churnUnit {
		kill := time.AfterFunc(500*time.Millisecond+time.Duration(random.Int64N(int64(soakTurn)/2)), func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
	}
	ended := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(unix.SIGTERM) })
	defer ended()
	out, err := cmd.Output()
	var result load.Result
	switch {
	case unit == churnUnit:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counts.logins++
		r.counts.killed++
		return nil
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("tgtload: %w: %s", err, said.String())
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return fmt.Errorf("tgtload's result: %w", err)
	}
	return r.count(&result)
}

func (r *soak) count(result *load.Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, v := &r.counts, result.Verification
	if v == nil || len(result.Statuses) > 0 {
		return fmt.Errorf("tgtload's result: found statuses %v and verification %v, expected none and one", result.Statuses, v)
	}
	c.logins += result.Connections.Count
	c.commands += uint64(result.IOPS * result.Seconds)
	c.bytes += uint64(result.BytesPerSecond * result.Seconds)
	c.verified += v.Checked
	c.miscompares += v.Miscompares
	return nil
}
