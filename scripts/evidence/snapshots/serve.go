package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/scripts/evidence/daemon"
)

// server is a tgtd whose volumes are on a disk.
type server struct {
	*daemon.Server
	*disk
	dir    string // of its own
	memory string // of its segment
	portal string
	api    *control.Client
}

// newServer starts a server on a new file system. In the configuration DISK and MEMORY stand
// for directories, and DIRECT for direct I/O where there is some for blocks of 512 bytes.
func newServer(o options, system string, size int64, config string) (s *server, err error) {
	d, err := newDisk(o, system, size)
	if err != nil {
		return nil, err
	}
	s = &server{disk: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "snapshots-server-"); err != nil {
		return s, err
	}
	if s.memory, err = os.MkdirTemp("/dev/shm", "snapshots-"); err != nil {
		return s, err
	}
	direct := ""
	if system == "xfs" { // btrfs has no direct I/O in units of 512 bytes
		direct = ", direct: true"
	}
	config = strings.NewReplacer("DISK", d.dir, "MEMORY", s.memory, " DIRECT", direct).Replace(config)
	s.Server, err = daemon.New(o.Tgtd, s.dir, config)
	return s, err
}

// start starts the process, again and again while the kernel has not ended what a killed one
// had under way, and finds its API.
func (s *server) start() (err error) {
	for range 5 {
		if s.portal, err = s.Start(); err == nil || !strings.Contains(err.Error(), "lock of another process") {
			break
		}
	}
	if err != nil {
		return err
	}
	s.api, err = control.Dial(s.Socket())
	return err
}

// kill ends it at once.
func (s *server) kill() error {
	s.api.Close()
	return s.Kill(unix.SIGKILL)
}

func (s *server) close() (err error) {
	if s.Server != nil && s.Process != nil {
		_ = s.Process.Kill() // it may have ended
		_, _ = s.Process.Wait()
	}
	for _, dir := range []string{s.dir, s.memory} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return errors.Join(err, s.disk.close())
}

// image is where a snapshot of a volume lies.
func (s *server) image(volume, name string) string {
	return filepath.Join(s.disk.dir, volume+".img.snapshots", name)
}

// halfMade are files of what is being made, or was when a server was killed.
func (s *server) halfMade(volume string) ([]string, error) {
	return filepath.Glob(filepath.Join(s.disk.dir, volume+".img*.snapshots", ".*"))
}

// read reads a file that is not read again.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// made is the snapshot of a name.
func (s *server) made(ctx context.Context, volume, name string) (control.Snapshot, error) {
	all, err := s.api.Snapshots(ctx, volume)
	if err != nil {
		return control.Snapshot{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return control.Snapshot{}, fmt.Errorf("found no snapshot %s of volume %s", name, volume)
}
