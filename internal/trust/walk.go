package trust

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// step is a directory that leads to a path, or what the path is.
type step struct {
	path  string // without symbolic links
	stat  *syscall.Stat_t
	above bool // it leads to what is relied upon
}

// maxLinks is the kernel's limit (path_resolution(7)).
const maxLinks = 40

// walk calls see for all that decides what a path leads to, from the root on, as the
// kernel resolves it. Symbolic links are followed, and count as the directories that
// they lie in.
func walk(path string, see func(step)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at, left, links := "/", names(path), 0
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			target, err := os.Readlink(at)
			if links++; err == nil && links > maxLinks {
				err = &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
			}
			if err != nil {
				return err
			}
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = "/"
			}
			left = append(names(target), left...)
		} else if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			see(step{at, stat, len(left) > 0})
		}
		if len(left) == 0 {
			return nil
		}
		at, left = filepath.Join(at, left[0]), left[1:] // ".." of a path without links is the one above
	}
}

func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
