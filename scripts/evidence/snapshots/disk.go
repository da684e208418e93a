package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is a new file system in a sparse file.
type disk struct {
	dir  string // where it is mounted
	file string // that it lies in
	loop string
}

// newDisk makes and mounts one.
func newDisk(o options, system string, size int64) (d *disk, err error) {
	file, err := os.CreateTemp(o.Disk, "snapshots-")
	if err != nil {
		return nil, err
	}
	d = &disk{file: file.Name()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		return d, err
	}
	loop, err := command("losetup", "--find", "--show", d.file)
	if err != nil {
		return d, err
	}
	d.loop = loop
	if _, err := command("mkfs."+system, "-q", d.loop); err != nil {
		return d, err
	}
	dir, err := os.MkdirTemp("", "snapshots-")
	if err != nil {
		return d, err
	}
	if err := unix.Mount(d.loop, dir, system, 0, ""); err != nil {
		return d, errors.Join(fmt.Errorf("mount of %s: %w", system, err), os.Remove(dir))
	}
	d.dir = dir
	return d, nil
}

// command runs a program of the system and returns what it said.
func command(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if c.Err != nil { // the server's user has no /usr/sbin
		c = exec.Command(filepath.Join("/usr/sbin", name), args...)
	}
	said, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, said)
	}
	return strings.TrimSpace(string(said)), nil
}

func (d *disk) close() (err error) {
	if d.dir != "" {
		err = errors.Join(unix.Unmount(d.dir, unix.MNT_DETACH), os.Remove(d.dir))
	}
	if d.loop != "" {
		_, detached := command("losetup", "--detach", d.loop)
		err = errors.Join(err, detached)
	}
	return errors.Join(err, os.Remove(d.file))
}

// used is how many bytes of it are in use, once everything is on it.
func (d *disk) used() (int64, error) {
	f, err := os.Open(d.dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return 0, err
	}
	var s unix.Statfs_t
	err = unix.Statfs(d.dir, &s)
	return int64(s.Blocks-s.Bfree) * s.Bsize, err
}
