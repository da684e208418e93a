package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/conf"
	"lunar/internal/initiator"
)

var (
	seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of random tests; they log it when they fail")
	effort = flag.Int("effort", 1, "how many times as many commands random tests send")
)

const scriptTarget = "iqn.2026-11.example.lunar:script"

// cacheVariant is a server under which every script must have the same results.
type cacheVariant struct {
	name    string
	block   string // of the cache; empty: no cache
	few     bool   // each volume may have one block of each partition
	nodes   int
	forward string // threshold
	disk    bool   // the volumes are not on tmpfs: direct I/O through the kernel's asynchronous interface
}

var cacheVariants = []cacheVariant{
	{"off", "", false, 1, "", false},
	{"tiny/1", "4KiB", true, 1, "4KiB", true},
	{"tiny/2", "8KiB", true, 2, "4KiB", false},
	{"tiny/4", "4KiB", true, 4, "never", false},
	{"large/1", "256KiB", false, 1, "auto", false},
	{"large/2", "64KiB", false, 2, "4KiB", true},
	{"large/4", "32KiB", false, 4, "4KiB", false},
}

// volumesOf are the volumes of a variant: every write policy and admission.
func (v cacheVariant) volumesOf() (all []string) {
	if v.block == "" {
		return []string{"write: through", "write: sync"}
	}
	for _, policy := range []string{"through", "back", "sync"} {
		for _, admission := range []string{"lru", "fussy"} {
			all = append(all, fmt.Sprintf("write: %s, cache: {admission: %s, read-ahead: 64KiB}", policy, admission))
		}
	}
	return all
}

// configure makes a configuration with a LUN for each volume. What the file
// format has too large a minimum or too coarse a unit for is set afterwards.
func (v cacheVariant) configure(t *testing.T, dir, images string) *conf.Config {
	t.Helper()
	var volumes, luns strings.Builder
	for i, how := range v.volumesOf() {
		fmt.Fprintf(&volumes, "  v%d: {type: file, path: %s, threads: 2, size: 2MiB, naa: \"%016x\", %s}\n", i, filepath.Join(images, fmt.Sprint(i)), scriptNAA+uint64(i), how)
		fmt.Fprintf(&luns, "%d: v%d, ", i, i)
	}
	text := fmt.Sprintf("server: {threads: %d, nodes: %d, buffers-per-thread: 8MiB, busy-poll: 0s}\n", max(2, v.nodes), v.nodes)
	if v.block != "" {
		text += fmt.Sprintf("cache: {size: 16MiB, block-size: %s, forward-threshold: %s, huge: off, segment: %s/segment}\n", v.block, v.forward, dir)
	}
	text += fmt.Sprintf("portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes:\n%stargets: {\"%s\": {luns: {%s}}}\n", &volumes, scriptTarget, &luns)
	cfg, _, err := conf.Parse("variant", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i := range cfg.Volumes {
		volume := &cfg.Volumes[i]
		volume.Size = scriptBlocks * block
		if c := volume.Cache; c != nil {
			c.FlushAge, c.DirtyLimit.Bytes = time.Millisecond, 64*conf.KiB
			if v.few {
				c.Max = cfg.Cache.BlockSize
			}
		}
	}
	return cfg
}

// scripted is a server that scripts run on.
type scripted struct {
	cacheVariant
	images string // directory of the volumes' files
	daemon *daemon
	portal string
	log    *buffer
	luns   int
}

func (v cacheVariant) serve(t *testing.T) *scripted {
	t.Helper()
	dir := memoryDir(t)
	s := &scripted{cacheVariant: v, images: dir, log: &buffer{}, luns: len(v.volumesOf())}
	if v.disk {
		s.images = t.TempDir()
	}
	cfg := v.configure(t, dir, s.images)
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if s.daemon, err = assemble(cfg, dir, log); err != nil {
		t.Fatal(err)
	}
	if err := openPortals(s.daemon, cfg, log); err != nil {
		t.Fatal(err)
	}
	s.portal = s.daemon.Addrs(cfg.PortalGroups[0].Tag)[0].String()
	return s
}

// checkUse expects that what the variant is about has happened.
func (s *scripted) checkUse(t *testing.T) {
	t.Helper()
	if s.block == "" {
		return
	}
	stats := s.daemon.cache.Stats()
	if stats.Hits == 0 || stats.Misses == 0 || s.few && stats.Evictions == 0 {
		t.Errorf("the cache was not put to the test: %+v", stats)
	}
	var forwarded uint64
	nodes, threshold := s.daemon.cache.Forwarding()
	for _, n := range nodes {
		forwarded += n.Forwarded
	}
	if want := s.nodes > 1 && s.forward != "never"; want != (forwarded > 0) {
		t.Errorf("%d requests were forwarded between %d nodes with a threshold of %d", forwarded, s.nodes, threshold)
	}
}

// initiators is how many there are for each LUN.
const initiators = 3

// login returns a session; some have digests.
func (s *scripted) login(lun, n int) (*initiator.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o := initiator.Options{Target: scriptTarget, Initiator: fmt.Sprintf("iqn.2026-11.example.lunar:lun%d.%d", lun, n)}
	if n == 1 {
		o.HeaderDigest, o.DataDigest = "CRC32C", "CRC32C"
	}
	c, err := initiator.Dial(ctx, s.portal, o)
	if err != nil {
		return nil, err
	}
	_, err = c.Command(make([]byte, 6), uint64(lun), nil, 0) // the unit attention that a session begins with
	return c, err
}

// play runs the scripts on a LUN: the shared one step by step through all
// initiators in turns, then each initiator its own at the same time as the others.
func (s *scripted) play(lun int, shared *script, own []*script, order []int) error {
	var sessions []*initiator.Conn
	defer func() {
		for _, c := range sessions {
			c.Close()
		}
	}()
	for n := range initiators {
		c, err := s.login(lun, n)
		if err != nil {
			return err
		}
		sessions = append(sessions, c)
	}
	for i := range shared.steps {
		if err := shared.perform(i, sessions[order[i]], lun); err != nil {
			return fmt.Errorf("shared: %w", err)
		}
	}
	errs := make([]error, initiators)
	var group sync.WaitGroup
	for n, c := range sessions {
		group.Go(func() {
			for i := 0; i < len(own[n].steps) && errs[n] == nil; i++ {
				errs[n] = own[n].perform(i, c, lun)
			}
		})
	}
	group.Wait()
	for n, err := range errs {
		if err != nil {
			return fmt.Errorf("initiator %d: %w", n, err)
		}
	}
	whole := own[0]
	return (&step{cdb: cdb(0x28, 0, 0, scriptBlocks), in: len(whole.model), check: func(in []byte) error {
		return same(in, whole.model, 0)
	}}).run(sessions[0], uint64(lun))
}

func (s *script) perform(i int, c *initiator.Conn, lun int) error {
	if err := s.steps[i].run(c, uint64(lun)); err != nil {
		return fmt.Errorf("step %d, %s (% x): %w", i, s.steps[i].name, s.steps[i].cdb, err)
	}
	return nil
}

// scripts returns one for all blocks and one for each initiator's, whose runs of
// blocks lie between each other's. They share the model of the medium.
func scripts(random *rand.Rand) (shared *script, own []*script, order []int) {
	const run = 37
	model := make([]byte, scriptBlocks*block)
	s := script{random: random, model: model, discards: true, run: scriptBlocks, stride: scriptBlocks}
	shared = &script{}
	*shared = s
	shared.make(60 * *effort)
	for range shared.steps {
		order = append(order, random.IntN(initiators))
	}
	for n := range initiators {
		s.first, s.run, s.stride = n*run, run, initiators*run
		one := s
		own = append(own, one.make(40**effort))
	}
	return shared, own, order
}

// TestMetamorphic: the same commands from several initiators find and leave the
// same whatever the cache is like: off, tiny or large; write through, back or
// sync; admission lru or fussy; 1, 2 or 4 nodes.
func TestMetamorphic(t *testing.T) {
	shared, own, order := scripts(rand.New(rand.NewPCG(*seed, 1)))
	for _, v := range cacheVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Logf("-seed %d", *seed)
			s := v.serve(t)
			var group sync.WaitGroup
			for lun := range s.luns {
				group.Go(func() {
					if err := s.play(lun, shared, own, order); err != nil {
						t.Errorf("%s: %v", v.volumesOf()[lun], err)
					}
				})
			}
			group.Wait()
			s.checkUse(t)
			if err := shutDown(s.daemon, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
			for lun := range s.luns {
				image, err := os.ReadFile(filepath.Join(s.images, fmt.Sprint(lun)))
				if err == nil {
					err = same(image, own[0].model, 0)
				}
				if err != nil {
					t.Errorf("image of %s: %v", v.volumesOf()[lun], err)
				}
			}
			if t.Failed() {
				t.Logf("%s", s.log)
			}
		})
	}
}
