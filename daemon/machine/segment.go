package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/cache/segment"
	"lunar/conf"
	"lunar/internal/bytesize"
)

// SegmentPath is where a server keeps its segment in the configured directory;
// empty: nowhere.
func SegmentPath(dir, identity string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, identity)
}

// MakeSegmentDir makes the directory of segments, for its owner alone. Those
// above it must exist.
func MakeSegmentDir(dir string) error {
	err := CheckMemoryFS(filepath.Dir(dir))
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = CheckSegmentDir(dir)
	}
	if err != nil {
		return fmt.Errorf("cache.segment: %w", err)
	}
	return nil
}

// ErrOthers is a directory of segments that is another user's.
var ErrOthers = errors.New("found a directory of user")

// CheckSegmentDir refuses a directory that is not in memory, or in which others
// could put files.
func CheckSegmentDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s: found a file of type %#o, expected a directory", dir, st.Mode&unix.S_IFMT)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: %w %d, expected one of user %d: choose another, such as %s-%d", dir, ErrOthers, st.Uid, os.Geteuid(), dir, os.Geteuid())
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s: found mode %04o, expected 0700 (chmod 700, or a directory below it)", dir, st.Mode&0o7777)
	}
	return CheckMemoryFS(dir)
}

// CheckMemoryFS refuses file systems that would write the cache to a disk.
func CheckMemoryFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("file system of %s: %w", dir, err)
	}
	if t := uint32(st.Type); t != unix.TMPFS_MAGIC && t != unix.HUGETLBFS_MAGIC {
		return fmt.Errorf("found a file system of type %#x at %s, expected tmpfs or hugetlbfs, whose files are in memory: such as %s", t, dir, conf.DefaultSegment)
	}
	return nil
}

// WarnOfSegments is for a start with a new state directory: segments that lie where
// its own will be may be those of the directory that was meant, or lost. One line tells of
// all, by the one that has the most unwritten data.
func WarnOfSegments(dir, stateDir string, log *slog.Logger) {
	if dir == "" {
		dir = conf.DefaultSegment
	}
	var most segment.Description
	segments := 0
	entries, _ := os.ReadDir(dir) // none where there is no directory
	for _, e := range entries {
		d, err := segment.Describe(filepath.Join(dir, e.Name()))
		if err != nil || d.Identity == "" || d.InUse {
			continue
		}
		if segments++; segments == 1 || d.Dirty > most.Dirty {
			most = d
		}
	}
	if segments > 0 {
		log.Warn("the state directory is new, but there is a cache segment of another: if its server is meant, stop, and start with that state directory (--state-dir), or, if it is lost, with a new one that has nothing but a file called identity with the name of that server; its volumes lack what is unwritten. If no such server is meant, this is no concern of the new one",
			"state-dir", stateDir, "segment", most.Path, "unwritten", bytesize.Text(most.Dirty), "server", most.Identity, "segments", segments)
	}
}

// ContainersOwn says why what is kept in dir goes with the container that tgtd runs
// in, as far as mountinfo (proc(5), /proc/self/mountinfo) tells; "" if it does not.
// Container runtimes mount a tmpfs of their own on /dev/shm and call it "shm", with
// 64 MiB unless they are told otherwise; that of the machine is called "tmpfs".
func ContainersOwn(mountinfo, dir string) string {
	best, own := -1, ""
	for line := range strings.Lines(mountinfo) {
		fields, more, ok := strings.Cut(line, " - ")
		place, kind := strings.Fields(fields), strings.Fields(more)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		at := place[4]
		if below := strings.TrimSuffix(at, "/") + "/"; dir != at && !strings.HasPrefix(dir, below) || len(at) < best {
			continue // the last of those at one place covers the others
		}
		best, own = len(at), ""
		if kind[0] == "tmpfs" && (kind[1] == "shm" || strings.Contains(","+kind[2]+",", ",size=65536k,")) {
			own = fmt.Sprintf("%s is a tmpfs called %q with %s", at, kind[1], kind[2])
		}
	}
	return own
}

// WarnOfContainer says at the start that a segment will not outlive the container.
func WarnOfContainer(dir string, log *slog.Logger) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return // a container without /proc: nothing is known
	}
	if why := ContainersOwn(string(mounts), dir); why != "" {
		log.Warn("the cache segment lies in memory that a container has for itself: data that write: back has acknowledged are lost when the container ends, as it does when tgtd is killed there. Give the container the machine's (docker run --ipc=host, or --volume /dev/shm/lunar:/dev/shm/lunar), or use write: through",
			"segment", dir, "found", why)
	}
}
