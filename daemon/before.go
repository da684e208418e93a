package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/durable"
)

// before is what there was when a start began, so that one that fails takes back the
// files and directories that it has made, and nothing else.
type before struct {
	above    []string              // missing directories that lead to the state directory, the lowest first
	dir      string                // the state directory
	own      map[string]bool       // what was tgtd's own in there
	volumes  []medium.MissingFiles // their files
	segments string                // directory of segments; empty: none
	shared   bool                  // it was there
	segment  map[string]bool       // what was in there
}

// lookBefore looks at a state directory that may not exist yet.
func lookBefore(dir string) *before {
	b := &before{dir: dir}
	for at := dir; durable.Absent(at); at = filepath.Dir(at) {
		b.above = append(b.above, at)
	}
	b.own = map[string]bool{}
	for _, path := range b.ownFiles() {
		b.own[path] = true
	}
	return b
}

// ownFiles are tgtd's own files and directories in the state directory, each directory
// in front of what it has.
func (b *before) ownFiles() (paths []string) {
	for _, name := range conf.StateNames {
		_ = filepath.WalkDir(filepath.Join(b.dir, name), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				paths = append(paths, path)
			}
			return nil
		})
	}
	return paths
}

// look looks at what a configuration will have made besides.
func (b *before) look(cfg *conf.Config) {
	for i := range cfg.Volumes {
		if m := medium.MissingOf(&cfg.Volumes[i]); m.Store || m.Shield || m.Header {
			b.volumes = append(b.volumes, m)
		}
	}
	if !cfg.Cache.Size.Given() || cfg.Cache.Segment == "" {
		return
	}
	b.segments, b.segment = cfg.Cache.Segment, map[string]bool{}
	b.shared = !durable.Absent(b.segments)
	entries, _ := os.ReadDir(b.segments)
	for _, e := range entries {
		b.segment[e.Name()] = true
	}
}

// restore removes what was not there. Everything is closed.
func (b *before) restore() error {
	var errs []error
	for i := range b.volumes {
		errs = append(errs, b.volumes[i].Restore())
	}
	if id, _, err := state.ReadIdentity(b.dir); err == nil && b.segments != "" && !b.segment[id] {
		_, err := medium.RemoveUnused(filepath.Join(b.segments, id), nil)
		errs = append(errs, err)
	}
	if b.segments != "" && !b.shared {
		_ = os.Remove(b.segments) // unless another server has used it meanwhile
	}
	for _, path := range slices.Backward(b.ownFiles()) {
		if !b.own[path] {
			errs = append(errs, medium.Removed(path))
		}
	}
	for _, dir := range b.above {
		_ = os.Remove(dir) // unless somebody has put something there
	}
	return errors.Join(errs...)
}
