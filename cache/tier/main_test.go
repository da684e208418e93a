package tier

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/cache"
)

var (
	seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of random tests; they log it when they fail")
	effort = flag.Int("effort", 1, "how many times as many operations random tests do")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const page = 4096

// setup is a cache and a volume of it.
type setup struct {
	nodes  int
	block  int
	blocks int // per partition
	parts  int // per node
	volume VolumeConfig
}

func (s setup) config() Config {
	parts := s.nodes * s.parts
	return Config{
		Layout: cache.Layout{BlockSize: s.block, Neighbours: 2, Partitions: parts, Nodes: s.nodes},
		Bytes:  int64(s.block * s.blocks * parts), LUs: 3,
	}
}

var (
	tiny  = setup{nodes: 1, block: 2 * page, blocks: 2, parts: 2}
	large = setup{nodes: 1, block: 64 << 10, blocks: 32, parts: 2}
)

func (s setup) on(nodes int) setup {
	s.nodes = nodes
	return s
}

func (s setup) with(policy Policy, admission string) setup {
	s.volume.Policy, s.volume.Admission = policy, admission
	if admission == fussy {
		s.volume.Fussy = cache.FussyParams{FreqThreshold: 1, AccessThreshold: 5, Metadata: 64, HRCount: 3}
	}
	return s
}

// newCache makes a Cache that is checked and closed at the end of the test, after
// all that is closed later than this call.
func newCache(t testing.TB, config Config) *Cache {
	t.Helper()
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// wrap returns store behind a new cache.
func (s setup) wrap(t testing.TB, store backstore.Store) (backstore.Store, *Cache) {
	t.Helper()
	c := newCache(t, s.config())
	w, err := c.Wrap(store, s.volume)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

func newMem(t testing.TB, async bool) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Size: backstoretest.Size, Async: async})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRAM(t testing.TB) backstore.Store {
	t.Helper()
	s, err := backstore.NewRAM(backstoretest.Size, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newFile(t testing.TB, direct bool) backstore.Store {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tier")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "v"), Size: backstoretest.Size, Direct: direct})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
