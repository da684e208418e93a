package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/daemon"
)

// kills ends a server by kill -9 at random moments.
type kills struct {
	binary   string
	random   *rand.Rand
	done     int
	commands int
	wrong    []string
}

// killsVolumes are all kinds: write policy, admission, what guards the data.
func killsVolumes() (config string, units []*unit) {
	guards := []struct{ name, keys string }{
		{"plain", ""}, {"protected", ", protection: 1"},
		{"encrypted", ", encryption: {key-file: DIR/key}"}, {"both", ", protection: 1, encryption: {key-file: DIR/key}"},
	}
	var volumes, luns strings.Builder
	for _, policy := range []string{"back", "through", "sync"} {
		for _, admission := range []string{"lru", "fussy"} {
			for _, g := range guards {
				n, name := len(units), policy+"-"+admission+"-"+g.name
				fmt.Fprintf(&volumes, "  %s: {type: file, path: %s.img, size: 1MiB, write: %s, cache: {admission: %s}%s}\n", name, name, policy, admission, g.keys)
				fmt.Fprintf(&luns, "      - {lun: %d, volume: %s}\n", n, name)
				units = append(units, &unit{lun: uint64(n), name: name, lasting: true, ledger: newLedger(n, 1<<20/blockSize)})
			}
		}
	}
	for i, kind := range windowsKinds {
		n, name := len(units), fmt.Sprintf("windows-%d", i)
		fmt.Fprintf(&volumes, "  %s: {%s}\n", name, strings.ReplaceAll(kind, "NAME", name))
		fmt.Fprintf(&luns, "      - {lun: %d, volume: %s}\n", n, name)
		units = append(units, &unit{lun: uint64(n), name: name + ": " + kind, lasting: true, plain: true, ledger: newLedger(n, 1<<20/blockSize)})
	}
	return `
server: {threads: 2, buffers-per-thread: 4MiB, nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, block-size: 64KiB, huge: off, segment: DIR/segment, dirty-limit: 2MiB}
volumes:
` + volumes.String() + `targets:
  ` + targetName + `:
    luns:
` + luns.String(), units
}

// windowsKinds are mirrors, and volumes with writes in excess, as they are and below the
// other layers.
var windowsKinds = []string{
	"type: mirror, members: [NAME.a, NAME.b], size: 1MiB, held: 8MiB, window: 20ms",
	"type: mirror, members: [NAME.a, NAME.b], size: 1MiB, held: 8MiB, window: 20ms, write: back, cache: true",
	"type: mirror, members: [NAME.a, NAME.b], size: 1MiB, held: 8MiB, window: 20ms, write: sync, encryption: {key-file: DIR/key, header-file: NAME.header}",
	"type: file, path: NAME.img, size: 1MiB, excess: NAME.fast, excess-size: 16MiB, excess-writes: 100",
	"type: file, path: NAME.img, size: 1MiB, excess: NAME.fast, excess-size: 16MiB, excess-writes: 100, write: back, cache: true, encryption: {key-file: DIR/key}",
}

// run does so many rounds, each of which begins with what the one before has left.
func (k *kills) run(dir string, count int) error {
	config, units := killsVolumes()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		return err
	}
	s, err := daemon.New(k.binary, dir, config)
	if err != nil {
		return err
	}
	for k.done < count && len(k.wrong) == 0 {
		wrong, err := k.round(s, units)
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, w := range wrong {
			k.wrong = append(k.wrong, fmt.Sprintf("after kill %d: %v", k.done, w))
		}
		k.done++
	}
	return nil
}

// round serves, compares, works, and kills with commands under way.
func (k *kills) round(s *daemon.Server, units []*unit) (wrong []error, err error) {
	portal, err := s.Start()
	if err != nil {
		return nil, err
	}
	killed := make(chan error, 1)
	kill := func() { killed <- s.Kill(syscall.SIGKILL) }
	l, err := dial(portal, targetName, units, k.random)
	if err != nil {
		go kill()
		return nil, errors.Join(err, <-killed)
	}
	defer l.conn.Close()
	wrong, err = l.survey()
	shot, until := false, k.random.IntN(200)
	if err == nil && len(wrong) == 0 {
		err = l.run(func() bool {
			if l.ended >= until && !shot {
				shot = true
				time.AfterFunc(time.Duration(k.random.IntN(2000))*time.Microsecond, kill)
			}
			return true
		})
		k.commands += l.ended
	}
	if !shot {
		kill()
	}
	if dead := <-killed; dead != nil || shot && !errors.Is(err, errWrong) {
		err = dead
	}
	return wrong, err
}
