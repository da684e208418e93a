package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/daemon/medium"
	"lunar/internal/durable"
)

// ClaimName is the file in a state directory that its holder has locked.
const ClaimName = "tgtd.lock"

// Claim is the possession of a state directory: nobody else reads or changes what
// lies in it. It consists of two locks (flock(2)) that no other process inherits
// and that end with this one: of the directory, so that a lock file that is
// deleted or replaced lets nobody in, and of the lock file, for file systems that
// lock no directories, such as NFS. The lock file has the holder's process id.
type Claim struct{ Dir, File *os.File }

// Take takes possession of a state directory that exists. If another
// process has it, nothing is changed and the error names that process.
func Take(dir string) (*Claim, error) {
	c, err := takeClaim(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	return c, nil
}

func takeClaim(dir string) (*Claim, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, ClaimName)
	if err := lockDirectory(d, path); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	file, err := durable.Open(path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := LockFile(file, path); err != nil {
		return nil, errors.Join(err, file.Close(), d.Close())
	}
	return &Claim{d, file}, nil
}

// lockDirectory locks a directory where its file system can.
func lockDirectory(d *os.File, path string) error {
	err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return claimed(path)
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
		return nil // the lock file decides
	}
	return err
}

// LockFile locks the lock file, makes sure that it is still the one at path, and
// notes who has it.
func LockFile(f *os.File, path string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return claimed(path)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be locked, so that a second tgtd could not be kept away (--state-dir chooses another directory): %w", path, err)
	}
	own, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Lstat(path); err != nil || !os.SameFile(own, named) {
		return claimed(path)
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	return err
}

// claimed is the error for a state directory that another process has.
func claimed(path string) error {
	return fmt.Errorf("in use by %s; a tgtd that is running is asked by lunar status and changed by lunar apply, and --state-dir chooses another directory. Nothing was changed", HolderOf(path))
}

// HolderOf names the process that a lock file names.
func HolderOf(path string) string {
	const most = 32 // bytes: a process id and a line feed
	f, err := durable.Open(path, unix.O_RDONLY)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	pid := strings.TrimSpace(string(text))
	if err != nil || pid == "" || strings.Trim(pid, "0123456789") != "" {
		return "another process"
	}
	return fmt.Sprintf("%s, pid %s", CommandOf(pid), pid)
}

// Release gives the state directory back; nil has nothing to give. The lock file
// stays: one that is removed could be the next holder's.
func (c *Claim) Release() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.File.Truncate(0), c.File.Close(), c.Dir.Close())
}

// TakeFor takes possession of a state directory for a command that writes to
// path, if that lies in it; nil: it does not.
func TakeFor(dir, path string) (*Claim, error) {
	for above := filepath.Dir(path); ; above = filepath.Dir(above) {
		if medium.Same(above, dir) {
			return Take(dir)
		}
		if above == filepath.Dir(above) {
			return nil, nil
		}
	}
}

// CommandOf is the name of a process.
func CommandOf(pid string) string {
	name, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return "a process"
	}
	return strings.TrimSpace(string(name))
}
