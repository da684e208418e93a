package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Doubt is a reason not to rely on a path.
type Doubt struct {
	Path  string // that somebody else may change, the path itself or a directory that leads to it
	Found string
	Mend  string // the command that mends it
	// Grave is a path that everybody may change, or a group that is not the process's.
	// What is not grave was a mistake in most cases, and may be meant in some: a file of
	// another user, the group of the process, another group in a directory above.
	Grave bool
}

// String is the doubt with what mends it.
func (d Doubt) String() string {
	return fmt.Sprintf("%s: found %s, expected that nobody but root and user %d may change it (%s)", d.Path, d.Found, os.Geteuid(), d.Mend)
}

// Error is a doubt for which something is refused.
type Error struct{ Doubt }

// Error implements error.
func (e Error) Error() string { return e.String() }

// Check tells whether others may change the regular file or the directory that path
// leads to. The error is an Error for the gravest doubt; the others are told to warn,
// which may be nil. Of a path that is missing, what leads to it is judged. Pipes and
// devices are not: somebody means them.
func Check(path string, warn func(Doubt)) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	var doubts []Doubt
	err = walk(path, func(s step) {
		if d, doubtful := s.judge(os.Geteuid(), os.Getegid()); doubtful && !readOnly(s.path) {
			doubts = append(doubts, d)
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range doubts {
		if d.Grave {
			return Error{d}
		}
	}
	for _, d := range doubts {
		if warn != nil {
			warn(d)
		}
	}
	return nil
}

// overflow is the user that files have whose owner has no number in a user namespace.
const overflow = 65534

// judge is the rule. A sticky directory lets everybody make files and nobody replace
// those of others, which is enough above what is relied upon.
func (s step) judge(user, group int) (d Doubt, doubtful bool) {
	const everybody, others, sticky = 0o002, 0o020, unix.S_ISVTX
	uid, gid := int(s.stat.Uid), int(s.stat.Gid)
	shared := s.above && s.stat.Mode&sticky != 0
	d.Path = s.path
	switch {
	case s.stat.Mode&everybody != 0 && !shared:
		d.Found, d.Mend, d.Grave = fmt.Sprintf("mode %04o", s.stat.Mode&0o7777), "chmod o-w "+s.path, true
	case s.stat.Mode&others != 0 && !shared && gid != 0:
		d.Found, d.Mend = fmt.Sprintf("mode %04o for group %d", s.stat.Mode&0o7777, gid), "chmod g-w "+s.path
		d.Grave = gid != group && !s.above
	case uid != 0 && uid != user && uid != overflow && !s.above:
		d.Found, d.Mend = fmt.Sprintf("owner %d", uid), fmt.Sprintf("chown %d %s", user, s.path)
	default:
		return Doubt{}, false
	}
	return d, true
}

// readOnly reports whether nobody can change a path by way of the file system that is
// mounted there, whatever its mode says: container runtimes mount configurations so.
func readOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// Below tells, as an Error, of a regular file or a directory that others may change,
// in a directory that Check has found nothing grave of.
func Below(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	if d, doubtful := (step{path: path, stat: stat}).judge(os.Geteuid(), os.Getegid()); doubtful && d.Grave {
		return Error{d}
	}
	return nil
}
