package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/backstore/crypt"
	"lunar/conf"
)

// before is what there was when a start began, so that one that fails takes back the
// files and directories that it has made, and nothing else.
type before struct {
	missing  []string        // directories that lead to the state directory, the lowest first
	dir      string          // the state directory
	own      map[string]bool // what was tgtd's own in there
	volumes  []conf.Volume   // each with those of its files that were missing
	segments string          // directory of segments; empty: none
	shared   bool            // it was there
	segment  map[string]bool // what was in there
}

// lookBefore looks at a state directory that may not exist yet.
func lookBefore(dir string) *before {
	b := &before{dir: dir}
	for at := dir; absent(at); at = filepath.Dir(at) {
		b.missing = append(b.missing, at)
	}
	b.own = map[string]bool{}
	for _, path := range b.ownFiles() {
		b.own[path] = true
	}
	return b
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
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
		if v := missingOf(&cfg.Volumes[i]); v.Path+v.ProtectionFile != "" || v.Encryption != nil {
			b.volumes = append(b.volumes, v)
		}
	}
	if !cfg.Cache.Size.Given() || cfg.Cache.Segment == "" {
		return
	}
	b.segments, b.segment = cfg.Cache.Segment, map[string]bool{}
	b.shared = !absent(b.segments)
	entries, _ := os.ReadDir(b.segments)
	for _, e := range entries {
		b.segment[e.Name()] = true
	}
}

// missingOf is a volume with those of its files alone that are missing.
func missingOf(v *conf.Volume) (m conf.Volume) {
	if v.Path != "" && absent(v.Path) {
		m.Path = v.Path
	}
	if v.ProtectionFile != "" && absent(v.ProtectionFile) {
		m.ProtectionFile = v.ProtectionFile
	}
	if v.Encryption != nil && absent(v.Encryption.HeaderFile) {
		m.Encryption = &conf.VolumeEncryption{HeaderFile: v.Encryption.HeaderFile}
	}
	return m
}

// restore removes what was not there. Everything is closed.
func (b *before) restore() error {
	var errs []error
	for i := range b.volumes {
		errs = append(errs, restoreVolume(&b.volumes[i]))
	}
	if id, _, err := readIdentity(b.dir); err == nil && b.segments != "" && !b.segment[id] {
		_, err := removeUnused(filepath.Join(b.segments, id), nil)
		errs = append(errs, err)
	}
	if b.segments != "" && !b.shared {
		_ = os.Remove(b.segments) // unless another server has used it meanwhile
	}
	for _, path := range slices.Backward(b.ownFiles()) {
		if !b.own[path] {
			errs = append(errs, removed(path))
		}
	}
	for _, dir := range b.missing {
		_ = os.Remove(dir) // unless somebody has put something there
	}
	return errors.Join(errs...)
}

// restoreVolume removes the files of a volume that the start has made. What has been
// written to meanwhile stays, with all that belongs to it.
func restoreVolume(v *conf.Volume) error {
	if v.Path != "" {
		if gone, err := removeUnused(v.Path, crypt.Blank); err != nil || !gone {
			return err
		}
	}
	var errs []error
	if v.ProtectionFile != "" {
		_, err := removeUnused(v.ProtectionFile, nil)
		errs = append(errs, err)
	}
	if v.Encryption != nil && v.Path != "" {
		errs = append(errs, removed(v.Encryption.HeaderFile))
	}
	return errors.Join(errs...)
}

// removeUnused removes a file that nobody has locked and that may go, if there is one,
// and reports whether there is none now.
func removeUnused(path string, may func(path string) (bool, error)) (gone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil
	}
	if may != nil {
		if ok, err := may(path); err != nil || !ok {
			return false, err
		}
	}
	return true, os.Remove(path)
}
