package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"lunar/cache/segment"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/control"
	"lunar/daemon/machine"
	"lunar/daemon/state"
	"lunar/daemon/volumes"
	"lunar/internal/arena"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/numa"
)

// cacheCheck looks at the cache of a configuration without taking its memory.
type cacheCheck struct {
	cfg      *conf.Config
	topology numa.Topology
	stateDir string
	options  tier.Options
	has      string // who has the memory already, so that it need not be free
	notes    []string
}

// checkCache compares the cache with this machine, and with what the last server
// of the state directory left in memory.
func checkCache(cfg *conf.Config, topology numa.Topology, stateDir string) (notes []string, err error) {
	byDefault := stateDir == ""
	if byDefault {
		if stateDir, err = conf.DefaultStateDir(); err != nil && !cfg.Cache.Size.Given() {
			return nil, nil // there is nothing to look for
		}
		if err != nil {
			return nil, err
		}
	}
	k := &cacheCheck{cfg: cfg, topology: topology, stateDir: stateDir}
	if control.Runs(control.Find(stateDir, byDefault, "")) {
		k.has = "a server runs"
	}
	if err := k.checkSize(); err != nil {
		return nil, err
	}
	if err := k.checkSegment(); err != nil {
		return nil, err
	}
	return k.notes, k.checkFree()
}

// checkSize computes what the server would ask for, as far as it needs no
// identity.
func (k *cacheCheck) checkSize() (err error) {
	if !k.cfg.Cache.Size.Given() {
		return nil
	}
	identity, _, err := state.ReadIdentity(k.stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	nodes := len(k.topology.Nodes)
	if k.options, err = volumes.CacheOptions(k.cfg, k.topology, identity); err == nil {
		k.note("the cache has %s: %s on each of %s", bytesize.Text(k.total()), bytesize.Text(k.options.PerNode), cli.Counted(nodes, "NUMA node"))
	}
	return err
}

func (k *cacheCheck) total() int64 { return k.options.PerNode * int64(len(k.topology.Nodes)) }

func (k *cacheCheck) note(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}

// checkSegment looks at what a server left in memory.
func (k *cacheCheck) checkSegment() error {
	note, err := state.ReadSegmentNote(k.stateDir)
	if err != nil {
		return err
	}
	path := k.options.Segment
	if err := volumes.CheckLeftover(&note, path, slog.New(slog.DiscardHandler)); err != nil || path == "" || k.options.Identity == "" {
		return err
	}
	found, err := tier.Inspect(k.options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, found.Attachable); err != nil {
		return err
	}
	if k.has == "" {
		k.has = "the segment exists"
	}
	k.note("cache segment %s of %s, of which %s are not written yet, last used by version %s, which %s: %s",
		path, bytesize.Text(found.Size), bytesize.Text(found.Dirty), found.UsedBy, lastUse(found.Description), fate(found))
	return nil
}

// fate says what this version would do with a segment.
func fate(i tier.Inspection) string {
	if i.Replaced != "" {
		return "this version would replace it, for it has other settings (" + i.Replaced + ")"
	}
	return "this version can attach it"
}

// lastUse says how the last process with a segment fared.
func lastUse(d segment.Description) string {
	switch {
	case d.InUse:
		return fmt.Sprintf("has it now as process %d", d.Process)
	case d.Clean:
		return "stopped in order"
	}
	return "did not stop in order"
}

// checkFree compares the cache with the memory that is free, unless it is taken
// already.
func (k *cacheCheck) checkFree() error {
	if !k.cfg.Cache.Size.Given() {
		return nil
	}
	if k.has != "" {
		k.note("%s: whether enough memory is free was not checked", k.has)
		return nil
	}
	if dir := k.cfg.Cache.Segment; dir != "" {
		return k.checkSpace(dir)
	}
	limits, err := arena.ReadLimits("")
	if err != nil {
		return err
	}
	if err := limits.Check(arena.Demand{Bytes: k.total(), Huge: k.options.Huge == arena.HugeRequire}); err != nil {
		return fmt.Errorf("cache.size: %w", err)
	}
	return nil
}

// checkSpace compares the cache with the file system of a new segment.
func (k *cacheCheck) checkSpace(dir string) error {
	err := machine.CheckSegmentDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir) // it will be made
		err = machine.CheckMemoryFS(dir)
	}
	if errors.Is(err, machine.ErrOthers) && os.Geteuid() == 0 { // root looks, and another user is to serve
		k.note("%s belongs to another user: whether the server could have the cache there was not checked (runuser -u USER -- looks as USER)", dir)
		return nil
	}
	if err == nil {
		err = k.fits(dir)
	}
	if err != nil {
		return fmt.Errorf("cache.segment: %w", err)
	}
	return nil
}

func (k *cacheCheck) fits(dir string) error {
	_, reserved, err := arena.PageSize(dir)
	if err == nil && !reserved && k.options.Huge == arena.HugeRequire {
		err = errors.New("found huge: require, but its directory is not on hugetlbfs; expected one, such as a mount of type hugetlbfs on /dev/hugepages")
	}
	if err != nil {
		return err
	}
	return arena.CheckFile(dir, k.total(), false)
}
