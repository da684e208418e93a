package daemon

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/conf"
	"lunar/internal/eventually"
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

// volumeVariant is a volume on which a script must have the same results as on
// all others of its shape.
type volumeVariant struct {
	shape
	how        string // keys of the configuration
	protection int    // type of its protection information
	encrypted  bool
}

func (w volumeVariant) String() string {
	return fmt.Sprintf("%s, block-size: %d, protection: %d, encrypted: %t", w.how, w.unit, w.protection, w.encrypted)
}

// Two stores as one. PATH is that of the one that has all in the end.
const (
	mirrorKeys = "type: mirror, members: [PATH, PATH.other], map: PATH.map, held: 8MiB, window: 10ms"
	excessKeys = "type: file, excess: PATH.fast, excess-size: 16MiB, excess-writes: 100"
)

// volumesOf are the volumes of a variant: every write policy and admission,
// some of them encrypted, and between all variants every type of protection information with every block size.
func (v cacheVariant) volumesOf() (all []volumeVariant) {
	small, large := shapes[0], shapes[1]
	if v.block == "" {
		for _, how := range []string{"type: file, write: through", "type: file, write: sync", "type: ram"} {
			all = append(all, volumeVariant{shape: small, how: how}, volumeVariant{shape: large, how: how})
		}
		for protection := 1; protection <= 3; protection++ {
			all = append(all, volumeVariant{small, "type: file", protection, protection == 2})
		}
		all = append(all, volumeVariant{small, mirrorKeys, 0, false}, volumeVariant{large, excessKeys + ", write: sync", 0, true})
		return append(all, volumeVariant{large, "type: file, write: sync", 1, false}, volumeVariant{small, "type: file", 0, true}, volumeVariant{large, "type: file", 0, true})
	}
	const cached = "type: file, write: %s, cache: {admission: %s, read-ahead: 64KiB}"
	n := slices.Index(cacheVariants, v)
	for _, policy := range []string{"through", "back", "sync"} {
		for _, admission := range []string{"lru", "fussy"} {
			all = append(all, volumeVariant{small, fmt.Sprintf(cached, policy, admission), 0, n%2 == 1 && admission == "lru"})
		}
	}
	policy := []string{"back", "through"}[n%2]
	windows := []string{mirrorKeys, excessKeys}[n%2]
	all = append(all, volumeVariant{small, windows + ", cache: true, write: back", 2 * (n / 2 % 2), n%3 == 0})
	return append(all, volumeVariant{small, fmt.Sprintf(cached, "back", "fussy"), 1 + n%3, n%2 == 0}, volumeVariant{large, fmt.Sprintf(cached, policy, "lru"), n % 4, n%2 == 0})
}

// configure makes a configuration with a LUN for each volume. What the file
// format has too large a minimum or too coarse a unit for is set afterwards.
func (v cacheVariant) configure(t *testing.T, dir, images string) *conf.Config {
	t.Helper()
	writeFile(t, filepath.Join(dir, "key"), strings.Repeat("9f", 32))
	var volumes, luns strings.Builder
	for i, w := range v.volumesOf() {
		path := filepath.Join(images, fmt.Sprint(i))
		fmt.Fprintf(&volumes, "  v%02d: {threads: 2, size: 2MiB, naa: \"%016x\", block-size: %d, %s", i, scriptNAA+uint64(i), w.unit, strings.ReplaceAll(w.how, "PATH", path))
		if strings.HasPrefix(w.how, "type: file") {
			fmt.Fprintf(&volumes, ", path: %s", path)
		}
		if w.protection > 0 {
			fmt.Fprintf(&volumes, ", protection: %d, protection-file: %s.pi", w.protection, path)
		}
		if w.encrypted {
			fmt.Fprintf(&volumes, ", encryption: {key-file: %s/key, header-file: %s%s}", dir, path, conf.HeaderSuffix)
		}
		volumes.WriteString("}\n")
		fmt.Fprintf(&luns, "%d: v%02d, ", i, i)
	}
	text := fmt.Sprintf("server: {threads: %d, nodes: %d, buffers-per-thread: 8MiB, busy-poll: 0s, limits: {max-connections: 2}, nop: {interval: 0s}}\n", max(2, v.nodes), v.nodes)
	if v.block != "" {
		text += fmt.Sprintf("cache: {size: 16MiB, block-size: %s, forward-threshold: %s, huge: off, checksum: true, segment: %s/segment}\n", v.block, v.forward, dir)
	}
	text += fmt.Sprintf("portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes:\n%stargets: {\"%s\": {luns: {%s}}}\n", &volumes, scriptTarget, &luns)
	cfg, _, err := conf.Parse("variant", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i := range cfg.Volumes {
		volume := &cfg.Volumes[i]
		volume.Size = conf.Size(v.volumesOf()[i].bytes())
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
	log    *eventually.Output
	luns   []volumeVariant
}

func (v cacheVariant) serve(t *testing.T) *scripted {
	t.Helper()
	dir := memoryDir(t)
	s := &scripted{cacheVariant: v, images: dir, log: &eventually.Output{}, luns: v.volumesOf()}
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
	stats := s.daemon.Cache.Stats()
	if stats.Hits == 0 || stats.Misses == 0 || s.few && stats.Evictions == 0 {
		t.Errorf("the cache was not put to the test: %+v", stats)
	}
	var forwarded uint64
	nodes, threshold := s.daemon.Cache.Forwarding()
	for _, n := range nodes {
		forwarded += n.Forwarded
	}
	if want := s.nodes > 1 && s.forward != "never"; want != (forwarded > 0) {
		t.Errorf("%d requests were forwarded between %d nodes with a threshold of %d", forwarded, s.nodes, threshold)
	}
}

// initiators is how many there are for each LUN.
const initiators = 3

// session is a session of one connection or of two.
type session struct {
	conns  []*initiator.Conn
	next   int
	tuples *tuples // protection information goes along with reads and writes; nil: none
}

// login returns a session: the first has one connection, the second has digests
// and sends and fetches protection information where it can, the third has two
// connections, one of them with digests, which it uses in turns.
func (s *scripted) login(lun, n int) (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o := initiator.Options{Target: scriptTarget, Initiator: fmt.Sprintf("iqn.2026-11.example.lunar:lun%d.%d", lun, n)}
	switch n {
	case 1:
		o.HeaderDigest, o.DataDigest = "CRC32C", "CRC32C"
	case 2:
		o.Keys = append(o.Keys, initiator.Key{Name: "MaxConnections", Value: "2"})
	}
	c, err := initiator.Dial(ctx, s.portal, o)
	if err != nil {
		return nil, err
	}
	out := &session{conns: []*initiator.Conn{c}}
	if w := s.luns[lun]; n == 1 && (w.protection == 1 || w.protection == 3) { // type 2 has CDBs of its own for it
		out.tuples = &tuples{w}
	}
	if n == 2 {
		more, err := c.Join(ctx, s.portal, initiator.Options{Target: scriptTarget, Initiator: o.Initiator, CID: 1, HeaderDigest: "CRC32C", DataDigest: "CRC32C"})
		if err != nil {
			return out, err
		}
		out.conns = append(out.conns, more)
	}
	_, err = c.Command(make([]byte, 6), uint64(lun), nil, 0) // the unit attention that a session begins with
	return out, err
}

func (n *session) close() {
	for _, c := range n.conns {
		c.Close()
	}
}

// perform does a step of a script over the connection whose turn it is.
func (n *session) perform(s *script, i, lun int) error {
	c := n.conns[n.next%len(n.conns)]
	n.next++
	one := &s.steps[i]
	err := error(nil)
	if n.tuples != nil && n.tuples.apply(one) {
		err = n.tuples.run(one, c, uint64(lun))
	} else {
		err = one.run(c, uint64(lun))
	}
	if err != nil {
		return fmt.Errorf("step %d, %s (% x): %w", i, one.name, one.cdb, err)
	}
	return nil
}

// play runs the scripts on a LUN: the shared one step by step through all
// initiators in turns, then each initiator its own at the same time as the others.
func (s *scripted) play(lun int, p *plot) error {
	var sessions []*session
	defer func() {
		for _, n := range sessions {
			n.close()
		}
	}()
	for n := range initiators {
		one, err := s.login(lun, n)
		if one != nil {
			sessions = append(sessions, one)
		}
		if err != nil {
			return err
		}
	}
	for i := range p.shared.steps {
		if err := sessions[p.order[i]].perform(p.shared, i, lun); err != nil {
			return fmt.Errorf("shared: %w", err)
		}
	}
	errs := make([]error, initiators)
	var group sync.WaitGroup
	for n, one := range sessions {
		group.Go(func() {
			for i := 0; i < len(p.own[n].steps) && errs[n] == nil; i++ {
				errs[n] = one.perform(p.own[n], i, lun)
			}
		})
	}
	group.Wait()
	for n, err := range errs {
		if err != nil {
			return fmt.Errorf("initiator %d: %w", n, err)
		}
	}
	return (&step{cdb: cdb(0x28, 0, 0, p.blocks), in: p.bytes(), check: func(in []byte) error {
		return p.same(in, p.shared.model, 0)
	}}).run(sessions[0].conns[0], uint64(lun))
}

// plot is what happens on every volume of a shape: a script for all blocks, which
// the initiators perform in turns, and one for each initiator's, whose runs of
// blocks lie between each other's. They share the model of the shape.
type plot struct {
	shape
	shared *script
	own    []*script
	order  []int // of the initiators
}

func plotOf(m shape, random *rand.Rand) *plot {
	const run = 37
	s := script{shape: m, random: random, model: make([]byte, m.bytes()), discards: true, run: m.blocks, stride: m.blocks}
	p := &plot{shape: m, shared: &script{}}
	*p.shared = s
	p.shared.make(60 * *effort)
	for range p.shared.steps {
		p.order = append(p.order, random.IntN(initiators))
	}
	for n := range initiators {
		s.first, s.run, s.stride = n*run, run, initiators*run
		one := s
		p.own = append(p.own, one.make(40**effort))
	}
	return p
}

// TestMetamorphic: the same commands from several initiators find and leave the
// same whatever the volume and its cache are like: off, tiny or large; write
// through, back or sync; admission lru or fussy; 1, 2 or 4 nodes; without protection
// information or with any of its types, kept by the server alone or sent along;
// blocks of 512 or 4096 bytes; one connection or several, with digests or without.
func TestMetamorphic(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 1))
	plots := map[shape]*plot{}
	for _, m := range shapes {
		plots[m] = plotOf(m, random)
	}
	for _, v := range cacheVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Logf("-seed %d", *seed)
			s := v.serve(t)
			var group sync.WaitGroup
			for lun, w := range s.luns {
				group.Go(func() {
					if err := s.play(lun, plots[w.shape]); err != nil {
						t.Errorf("%v: %v", w, err)
					}
				})
			}
			group.Wait()
			s.checkUse(t)
			if err := shutDown(s.daemon, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
			for lun, w := range s.luns {
				if w.how == "type: ram" {
					continue // all of it has been read
				}
				path := filepath.Join(s.images, fmt.Sprint(lun))
				image, err := os.ReadFile(path)
				if other, missing := os.ReadFile(path + ".other"); missing == nil && !bytes.Equal(image, other) {
					t.Errorf("%v: the members differ", w)
				}
				if w.encrypted {
					image = deciphered(t, path, image, w.unit)
				}
				if err == nil {
					err = w.same(image, plots[w.shape].shared.model, 0)
				}
				if err != nil {
					t.Errorf("image of %v: %v", w, err)
				}
			}
			if t.Failed() {
				t.Logf("%s", s.log)
			}
		})
	}
}
