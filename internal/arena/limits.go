package arena

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/internal/bytesize"
)

// Limits is what stands against an arena. A limit that is unknown or does not
// apply is math.MaxInt64; all are bytes.
type Limits struct {
	Available int64 // MemAvailable, or less where a cgroup allows less
	Space     int64 // free on the file system of the named file
	HugeFree  int64 // in reserved huge pages that are free
	HugeTotal int64 // in reserved huge pages
	HugePage  int64 // of one huge page; 0 if the kernel has none
	Locked    int64 // RLIMIT_MEMLOCK; no limit for who may lock anything
}

// ReadLimits reads the limits that hold now. dir is the directory of the named
// file, or "" for anonymous memory.
func ReadLimits(dir string) (Limits, error) {
	limits, err := readMeminfo("/proc/meminfo")
	if err != nil {
		return Limits{}, err
	}
	limits.Available = min(limits.Available, cgroupRoom("/sys/fs/cgroup"))
	limits.Locked = lockLimit()
	limits.Space = math.MaxInt64
	if dir == "" {
		return limits, nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Limits{}, fmt.Errorf("arena: free space of %s: %w", dir, err)
	}
	if uint32(fs.Type) == hugetlbMagic {
		limits.readPool(hugePools, fs.Bsize)
	}
	if fs.Blocks > 0 { // hugetlbfs without a size option says 0: only its pool bounds it
		limits.Space = int64(fs.Bavail) * fs.Bsize
	}
	return limits, nil
}

// hugePools has a directory for each size of huge pages.
const hugePools = "/sys/kernel/mm/hugepages"

// readPool replaces the numbers of the default huge pages by those of another
// size, where they can be read.
func (l *Limits) readPool(pools string, page int64) {
	dir := filepath.Join(pools, fmt.Sprintf("hugepages-%dkB", page>>10))
	total, ok := readNumber(filepath.Join(dir, "nr_hugepages"))
	free, alsoOK := readNumber(filepath.Join(dir, "free_hugepages"))
	if !ok || !alsoOK {
		return
	}
	promised, _ := readNumber(filepath.Join(dir, "resv_hugepages")) // kernels have it if they have the others
	l.HugePage, l.HugeTotal, l.HugeFree = page, total*page, (free-promised)*page
}

// CheckFile says with numbers why a new file of size bytes in dir does not fit,
// or returns nil. On hugetlbfs that means its pool of huge pages.
func CheckFile(dir string, size int64, lock bool) error {
	limits, err := ReadLimits(dir)
	if err != nil {
		return err
	}
	_, reserved, err := PageSize(dir)
	if err != nil {
		return err
	}
	if !reserved {
		return limits.Check(Demand{Bytes: size, File: true, Lock: lock})
	}
	if err := limits.Check(Demand{Bytes: size, Huge: true}); err != nil {
		return err
	}
	limits.Available = math.MaxInt64 // the pages are set aside already
	return limits.Check(Demand{Bytes: size, File: true})
}

func readMeminfo(path string) (Limits, error) {
	limits := Limits{Available: math.MaxInt64}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return limits, nil // a container without /proc: nothing is known
	}
	if err != nil {
		return limits, fmt.Errorf("arena: available memory: %w", err)
	}
	size := meminfoValue(text, "Hugepagesize:", 0) << 10
	limits.HugePage = size
	limits.HugeFree = (meminfoValue(text, "HugePages_Free:", 0) - meminfoValue(text, "HugePages_Rsvd:", 0)) * size
	limits.HugeTotal = meminfoValue(text, "HugePages_Total:", 0) * size
	if kib := meminfoValue(text, "MemAvailable:", -1); kib >= 0 {
		limits.Available = kib << 10
	}
	return limits, nil
}

// meminfoValue returns the number of a line of meminfo as it stands there.
func meminfoValue(text []byte, name string, missing int64) int64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != name {
			continue
		}
		if n, err := strconv.ParseInt(string(fields[1]), 10, 53); err == nil {
			return n
		}
	}
	return missing
}

// cgroupRoom returns what the cgroup at dir may still take: with cgroup
// namespaces, the root that a container sees is its own.
func cgroupRoom(dir string) int64 {
	limit, ok := readNumber(filepath.Join(dir, "memory.max"))
	if !ok {
		return math.MaxInt64
	}
	used, _ := readNumber(filepath.Join(dir, "memory.current")) // unreadable counts as 0: the limit alone still helps
	return max(limit-used, 0)
}

// readNumber is false for files that are missing or hold no number, such as
// "max".
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// capIPCLock is the number of CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK.
const capIPCLock = 14

func lockLimit() int64 {
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range bytes.Lines(text) {
			hex, ok := bytes.CutPrefix(line, []byte("CapEff:"))
			caps, err := strconv.ParseUint(string(bytes.TrimSpace(hex)), 16, 64)
			if ok && err == nil && caps>>capIPCLock&1 == 1 {
				return math.MaxInt64
			}
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}

// Demand is what arenas together ask for.
type Demand struct {
	Bytes int64
	File  bool // in a named file
	Huge  bool // in reserved huge pages, and nothing else
	Lock  bool // locked in memory
}

// Check says with numbers why the demand does not fit, or returns nil.
func (l Limits) Check(d Demand) error {
	if d.Huge {
		return l.checkHuge(d.Bytes)
	}
	switch {
	case d.Bytes > l.Available:
		return fmt.Errorf("arena of %s: only %s of memory are available; ask for less", bytesize.Text(d.Bytes), bytesize.Text(l.Available))
	case d.File && d.Bytes > l.Space:
		return fmt.Errorf("arena of %s: only %s are free on its file system; ask for less, or remount it with a larger size", bytesize.Text(d.Bytes), bytesize.Text(l.Space))
	case d.Lock && d.Bytes > l.Locked:
		return fmt.Errorf("arena of %s: only %s may be locked in memory (RLIMIT_MEMLOCK); raise LimitMEMLOCK of the service", bytesize.Text(d.Bytes), bytesize.Text(l.Locked))
	}
	return nil
}

func (l Limits) checkHuge(want int64) error {
	if l.HugePage == 0 {
		return fmt.Errorf("arena of %s in huge pages: this kernel has none", bytesize.Text(want))
	}
	if want <= l.HugeFree {
		return nil
	}
	pages := (want + l.HugePage - 1) / l.HugePage
	return fmt.Errorf("arena of %s in huge pages: needs %d of %s, found %d free of %d; set vm.nr_hugepages to at least %d, or huge: auto",
		bytesize.Text(want), pages, bytesize.Text(l.HugePage), l.HugeFree/l.HugePage, l.HugeTotal/l.HugePage,
		l.HugeTotal/l.HugePage+pages-l.HugeFree/l.HugePage)
}
