package tier

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/cache/segment"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// sharedDir is a directory in shared memory.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tier")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// nodesOf makes this machine act as n nodes.
func nodesOf(t testing.TB, n int) numa.Topology {
	t.Helper()
	real, err := numa.Discover(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	topology, err := numa.Override(real, n)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// site is where servers run, one after the other: a segment and a directory.
type site struct {
	t       testing.TB
	options Options
	dir     string
}

const siteSize = 512 << 10

func newSite(t testing.TB) *site {
	return &site{t: t, dir: t.TempDir(), options: Options{
		Topology: nodesOf(t, 2), PerNode: 1 << 20, BlockSize: 16 << 10, Volumes: 2,
		Segment: filepath.Join(sharedDir(t), "own", "segment"), Identity: "server", Build: "v1",
	}}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) file(name string) []byte {
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// process is a server at a site.
type process struct {
	*site
	cache   *Cache
	loop    *evloop.Loop
	volumes []*opened
}

// opened is a volume of a process.
type opened struct {
	backstoretest.Client
	store backstore.Store
}

func (s *site) start() *process {
	s.t.Helper()
	c, err := Open(s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	return &process{site: s, cache: c, loop: backstoretest.NewLoop(s.t, false)}
}

// outcome checks how the segment was found.
func (p *process) outcome(want segment.Outcome) *process {
	p.t.Helper()
	if got := p.cache.Attached().Outcome; got != want.String() {
		p.t.Errorf("the segment was %s, expected %v", got, want)
	}
	return p
}

// config is that of a volume whose identity is made of its name.
func config(name string, policy Policy) VolumeConfig {
	id := uint64(0)
	for _, c := range []byte(name) {
		id = id<<8 | uint64(c)
	}
	return VolumeConfig{ID: id, Name: name, Policy: policy, Age: time.Hour}
}

// wrap opens a file of the site behind the cache.
func (p *process) wrap(c VolumeConfig, size int64) (backstore.Store, error) {
	store, err := backstore.OpenFile(backstore.FileConfig{Path: p.path(c.Name), Size: size})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.wrapStore(store, c)
}

func (p *process) wrapStore(store backstore.Store, c VolumeConfig) (backstore.Store, error) {
	v, err := p.cache.Wrap(store, c)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return v, nil
}

func (p *process) open(name string, policy Policy) *opened {
	p.t.Helper()
	v, err := p.wrap(config(name, policy), siteSize)
	return p.use(v, err)
}

func (p *process) use(v backstore.Store, err error) *opened {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	lane, err := v.Lane(p.loop)
	if err != nil {
		p.t.Fatal(err)
	}
	o := &opened{backstoretest.Client{Loop: p.loop, Lane: lane}, v}
	p.volumes = append(p.volumes, o)
	return o
}

// close ends the process in order and returns what volumes and cache said.
func (p *process) close() error {
	var errs []error
	for _, o := range p.volumes {
		backstoretest.On(p.loop, o.Lane.Close)
		errs = append(errs, o.store.Close())
	}
	if err := p.cache.Check(); err != nil {
		p.t.Error(err)
	}
	return errors.Join(errors.Join(errs...), p.cache.Close())
}

func (p *process) end() {
	p.t.Helper()
	if err := p.close(); err != nil {
		p.t.Error(err)
	}
}

// crash ends the process like a kill: nothing is written or noted any more.
func (p *process) crash() {
	var volumes []backstore.Store
	for _, o := range p.volumes {
		backstoretest.On(p.loop, o.Lane.Close)
		volumes = append(volumes, o.store)
	}
	crash(p.t, p.cache, volumes)
}

// crash ends a Cache, whose volumes have no lanes any more.
func crash(t testing.TB, c *Cache, volumes []backstore.Store) {
	t.Helper()
	for _, s := range volumes {
		v := s.(*volume)
		if v.flusher != nil {
			v.flusher.abandon()
		}
		if err := v.store.Close(); err != nil {
			t.Error(err)
		}
	}
	c.witnesses.stop()
	c.flusher.stop()
	c.unwatch()
	if err := errors.Join(c.blocks.Close(), c.config.Segment.Detach()); err != nil {
		t.Error(err)
	}
}

// hits reads and tells whether the store was not needed.
func (p *process) hits(o *opened, off int64, want []byte) bool {
	p.t.Helper()
	before := p.cache.Stats()
	if got := o.Read(p.t, off, len(want)); !bytes.Equal(got, want) {
		p.t.Errorf("%d bytes at %d are not what was written", len(want), off)
	}
	after := p.cache.Stats()
	return after.Misses == before.Misses && after.Bypassed == before.Bypassed
}

// After an orderly end hits come from the cache at once.
func TestWarmRestart(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		t.Run(policy.String(), func(t *testing.T) {
			s := newSite(t)
			p := s.start().outcome(segment.Fresh)
			data := backstoretest.Pattern(100<<10, 1)
			o := p.open("a", policy)
			o.Write(t, 8<<10, data)
			o.Read(t, 8<<10, len(data)) // through: what was written in part enters now
			p.end()
			if !bytes.Equal(s.file("a")[8<<10:][:len(data)], data) {
				t.Error("the store does not have the data")
			}
			p = s.start().outcome(segment.Warm)
			if a := p.cache.Attached(); a.WarmBlocks < 7 || a.DirtyBytes != 0 || a.Previous != "v1" || a.Generation != 2 {
				t.Errorf("attached %+v", a)
			}
			if !p.hits(p.open("a", policy), 8<<10, data) {
				t.Error("the cache is cold")
			}
			p.end()
		})
	}
}

// What others have written to the store while the server was down is seen.
func TestWarmRestartAfterOthersWrote(t *testing.T) {
	s := newSite(t)
	p := s.start()
	p.open("a", Back).Write(t, 0, backstoretest.Pattern(8<<10, 1))
	p.end()
	others := backstoretest.Pattern(8<<10, 2)
	if err := os.WriteFile(s.path("a"), append(bytes.Clone(others), make([]byte, siteSize-len(others))...), 0); err != nil {
		t.Fatal(err)
	}
	p = s.start().outcome(segment.Warm)
	if p.hits(p.open("a", Back), 0, others) {
		t.Error("a hit where nothing can be known")
	}
	p.end()
}

// A store without a stamp is read anew.
func TestWarmRestartWithoutStamp(t *testing.T) {
	s := newSite(t)
	for range 2 {
		p := s.start()
		v, err := p.wrapStore(newMem(t, false), config("a", Back))
		if p.hits(p.use(v, err), 0, make([]byte, page)) {
			t.Error("a hit where nothing can be known")
		}
		p.end()
	}
}

// After a crash dirty data are there and clean ones warm; the flusher writes
// what it finds.
func TestCrash(t *testing.T) {
	s := newSite(t)
	p := s.start()
	first, second := backstoretest.Pattern(48<<10, 1), backstoretest.Pattern(20<<10, 2)
	o := p.open("a", Back)
	o.Write(t, 0, first)
	o.Must(t, backstore.Op{Kind: backstore.Flush})
	o.Write(t, 100<<10, second)
	o.settle(t)
	p.crash()
	if bytes.Equal(s.file("a")[100<<10:][:len(second)], second) {
		t.Fatal("the store has dirty data already")
	}
	p = s.start().outcome(segment.Crashed)
	if a := p.cache.Attached(); a.DirtyBytes != int64(len(second)) || a.Dropped != 0 {
		t.Errorf("attached %+v, expected %d dirty bytes", a, len(second))
	}
	c := config("a", Back)
	c.Age = time.Millisecond
	o = p.use(p.wrap(c, siteSize))
	if !p.hits(o, 0, first) || !p.hits(o, 100<<10, second) {
		t.Error("the cache is cold")
	}
	eventually.Holds(t, "the flusher writes what it has found", func() bool {
		return bytes.Equal(s.file("a")[100<<10:][:len(second)], second)
	})
	o.settle(t)
	p.crash()
	p = s.start().outcome(segment.Crashed)
	if !p.hits(p.open("a", Back), 100<<10, second) {
		t.Error("the cache is cold")
	}
	p.end()
}

// Two processes do not have a segment at once.
func TestBusy(t *testing.T) {
	s := newSite(t)
	p := s.start()
	ended := make(chan struct{})
	go func() { // the next one waits
		time.Sleep(20 * time.Millisecond) // any moment will do
		p.end()
		close(ended)
	}()
	s.start().outcome(segment.Warm).end()
	<-ended
}

// Dirty data of a volume that is not configured any more wait for it; those of
// others who have none go, and their numbers are used again.
func TestOrphans(t *testing.T) {
	s := newSite(t)
	data := backstoretest.Pattern(8<<10, 1)
	p := s.start()
	p.open("kept", Back).Write(t, 16<<10, data)
	p.open("clean", Through).Read(t, 0, page)
	p.crash()

	p = s.start()
	a, b := p.open("new", Back), p.open("newer", Back)
	if got := p.cache.Settle(); len(got) != 1 || got[0] != (Orphan{config("kept", Back).ID, "kept", 8 << 10, got[0].Medium}) {
		t.Errorf("orphans %v", got)
	}
	for _, o := range []*opened{a, b} { // orphans keep nobody waiting
		o.Write(t, 0, backstoretest.Pattern(256<<10, 3))
	}
	if p.cache.room.unowned.Load() != 8<<10 {
		t.Errorf("%d bytes are nobody's", p.cache.room.unowned.Load())
	}
	p.end()

	p = s.start().outcome(segment.Warm)
	if n := p.cache.Attached().DirtyBytes; n != 8<<10 {
		t.Errorf("%d dirty bytes, expected those of the orphan", n)
	}
	if !p.hits(p.open("kept", Back), 16<<10, data) {
		t.Error("the orphan's data are not there")
	}
	if got := p.cache.Settle(); len(got) != 0 {
		t.Errorf("orphans %v", got)
	}
	if _, used := p.cache.table.End(); used != 1 {
		t.Errorf("%d volumes are known, expected one", used)
	}
	p.end()
	if !bytes.Equal(s.file("kept")[16<<10:][:len(data)], data) {
		t.Error("the store does not have the data")
	}
}

// Volumes that come and go do not use numbers up.
func TestNumbersAreReused(t *testing.T) {
	s := newSite(t)
	p := s.start()
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		o := p.open(name, Back)
		o.Write(t, 0, backstoretest.Pattern(page, 1))
		backstoretest.On(p.loop, o.Lane.Close)
		if err := o.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.volumes = nil
	p.end()
}

// Other settings: a segment without dirty data is replaced, one with them kept.
func TestChangedGeometry(t *testing.T) {
	s := newSite(t)
	p := s.start()
	data := backstoretest.Pattern(page, 1)
	p.open("a", Back).Write(t, 0, data)
	p.crash()
	old := s.options
	s.options.PerNode, s.options.Build = 2<<20, "v2"
	_, err := Open(s.options)
	var refused *segment.Refused
	if !errors.As(err, &refused) || refused.Reason != segment.Changed || refused.Dirty != page {
		t.Fatalf("with dirty data: %v", err)
	}
	for _, want := range []string{`"v1"`, `"v2"`, "4096 bytes of unwritten data", "old settings"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not tell %s", err, want)
		}
	}
	if i, err := Inspect(s.options); err != nil || i.Attachable == nil || i.Attachable.Error() != refused.Error() {
		t.Errorf("inspected: %+v, %v", i, err)
	}
	s.options = old
	p = s.start().outcome(segment.Crashed)
	p.open("a", Back)
	p.end()
	s.options.PerNode = 2 << 20
	if i, err := Inspect(s.options); err != nil || i.Attachable != nil {
		t.Errorf("inspected: %+v, %v", i, err)
	}
	p = s.start().outcome(segment.Fresh)
	if a := p.cache.Attached(); a.Replaced == "" || a.Previous != "v1" {
		t.Errorf("attached %+v", a)
	}
	p.end()
}

// A segment of another server, or a damaged one, is left alone.
func TestForeignAndDamaged(t *testing.T) {
	s := newSite(t)
	if _, err := Inspect(s.options); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("inspected nothing: %v", err)
	}
	p := s.start()
	p.open("a", Back).Write(t, 0, backstoretest.Pattern(page, 1))
	p.crash()
	other := s.options
	other.Identity = "another"
	refusedFor(t, other, segment.Identity)
	text, err := os.ReadFile(s.options.Segment)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(text)
	newer[8]++ // the format
	if err := os.WriteFile(s.options.Segment, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	next := s.options
	next.Build = "v2"
	if err := refusedFor(t, next, segment.Version); !strings.Contains(err.Error(), `version "v1" used it last, this is version "v2"`) {
		t.Errorf("%q does not name both versions", err)
	}
	damaged := bytes.Clone(text)
	for i := 8192; i < 8192+64*32; i++ { // the journal's first records
		damaged[i] ^= 1
	}
	if err := os.WriteFile(s.options.Segment, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, s.options, segment.Damaged)
	if now, err := os.ReadFile(s.options.Segment); err != nil || !bytes.Equal(now, damaged) {
		t.Errorf("the refused segment was changed, %v", err)
	}
}

func refusedFor(t *testing.T, o Options, want segment.Reason) error {
	t.Helper()
	_, err := Open(o)
	var refused *segment.Refused
	if !errors.As(err, &refused) || refused.Reason != want {
		t.Fatalf("%v, expected it refused as %v", err, want)
	}
	return err
}

// A table of volumes that has lost the name of dirty data is no reason to give
// them to another volume.
func TestLostRow(t *testing.T) {
	s := newSite(t)
	p := s.start()
	p.open("a", Back).Write(t, 0, backstoretest.Pattern(page, 1))
	p.cache.table.Row(0).Free()
	p.crash()
	if _, err := Open(s.options); err == nil || !strings.Contains(err.Error(), "table of volumes") {
		t.Errorf("attached: %v", err)
	}
}

// A store that has become too short for the dirty data is not served, nor are
// the data dropped.
func TestShrunkStore(t *testing.T) {
	s, c := newSite(t), config("a", Back)
	c.Adopt = true // that somebody has cut it is known
	data := backstoretest.Pattern(page, 1)
	p := s.start()
	p.open("a", Back).Write(t, siteSize-page, data)
	p.crash()
	for _, size := range []int64{siteSize - page, siteSize - sector} {
		if err := os.Truncate(s.path("a"), size); err != nil {
			t.Fatal(err)
		}
		p = s.start()
		if _, err := p.wrap(c, size); err == nil || !strings.Contains(err.Error(), "at least its old size") {
			t.Errorf("with %d bytes: %v", size, err)
		}
		p.crash()
	}
	p = s.start()
	if !p.hits(p.use(p.wrap(c, siteSize)), siteSize-page, data) {
		t.Error("the data are gone")
	}
	p.end()
}

// A volume that does not write back any more gets its dirty data written first.
func TestDrain(t *testing.T) {
	s := newSite(t)
	data := backstoretest.Pattern(20<<10, 1)
	p := s.start()
	p.open("a", Back).Write(t, 512, data)
	p.crash()
	p = s.start()
	refusing, err := backstore.OpenFile(backstore.FileConfig{Path: s.path("a"), Size: siteSize})
	if err != nil {
		t.Fatal(err)
	}
	faults := errstore.Wrap(refusing)
	faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium})
	if _, err := p.wrapStore(faults, config("a", Through)); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("a volume that cannot be written: %v", err)
	}
	o := p.open("a", Through)
	if !bytes.Equal(s.file("a")[512:][:len(data)], data) || p.cache.Stats().DirtyBytes != 0 {
		t.Error("dirty data were not written")
	}
	if got := o.Read(t, 512, len(data)); !bytes.Equal(got, data) {
		t.Error("what is read is not what was written")
	}
	p.end()
}

// What cannot be written at the end is there at the next start.
func TestStuck(t *testing.T) {
	s := newSite(t)
	data := backstoretest.Pattern(20<<10, 1)
	p := s.start()
	store, err := backstore.OpenFile(backstore.FileConfig{Path: s.path("a"), Size: siteSize})
	if err != nil {
		t.Fatal(err)
	}
	faults := errstore.Wrap(store)
	o := p.use(p.wrapStore(faults, config("a", Back)))
	o.Write(t, 0, data)
	faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium})
	if err := p.close(); err == nil || !strings.Contains(err.Error(), `volume "a": 20480 bytes`) {
		t.Errorf("the end: %v", err)
	}
	if err := o.store.Close(); err == nil {
		t.Error("a volume that went with the cache was closed again")
	}
	p = s.start().outcome(segment.Warm)
	if !p.hits(p.open("a", Back), 0, data) {
		t.Error("the data are gone")
	}
	p.end()
	if !bytes.Equal(s.file("a")[:len(data)], data) {
		t.Error("the store does not have the data")
	}
}

// Without a segment nothing stays.
func TestPrivate(t *testing.T) {
	s := newSite(t)
	s.options.Segment = ""
	var done, total int64
	s.options.Progress = func(d, of int64) { done, total = d, of }
	for range 2 {
		p := s.start()
		o := p.open("a", Back)
		if p.hits(o, 0, make([]byte, page)) {
			t.Error("a hit in an empty cache")
		}
		if a := p.cache.Attached(); a.Outcome != "private" || a.WarmBlocks != 0 {
			t.Errorf("attached %+v", a)
		}
		p.end()
	}
	if done != 2<<20 || total != 2<<20 {
		t.Errorf("the last progress was %d of %d bytes", done, total)
	}
}

// A node without memory of its own, or one that nothing is known of, takes part.
func TestNodeWithoutMemory(t *testing.T) {
	s := newSite(t)
	s.options.Topology = numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: []int{0}}, {ID: 77, CPUs: []int{1}}}}
	for _, path := range []string{s.options.Segment, ""} {
		s.options.Segment = path
		p := s.start()
		if n := p.cache.config.Layout.Nodes; n != 2 {
			t.Errorf("the cache is on %d nodes", n)
		}
		p.end()
	}
}
