package backstore

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lunar/backstore/internal/changes"
	"lunar/internal/evloop"
	"lunar/internal/intent"
	"lunar/internal/quiesce"
)

// volume is an open file or block device that holds a logical unit: what the
// file and block stores have in common. All lanes share its descriptor.
type volume struct {
	fd       int
	path     string
	direct   bool  // O_DIRECT
	local    bool  // its times are by this host's clock
	memory   bool  // lives in memory: its calls cannot wait for a device
	sync     bool  // every change is stable before it is acknowledged
	trims    bool  // discards with BLKDISCARD, not by punching holes
	device   bool  // a block device, which has the size that it has
	block    int64 // block size of the logical unit, in bytes
	opened   Stamp // as it was found; zero: none
	identity Identity
	zeroes   []byte // zeroChunk of them
	log      *slog.Logger

	intents   *intent.Log // nil: no writes with Atomic
	intentsFd int

	info   atomic.Pointer[Info]
	lacks  atomic.Uint32 // abilities that the kernel refused
	damage atomic.Pointer[damage]

	resizing sync.Mutex
	counters quiesce.Counters // of the lanes
	changes  changes.Counts

	open     sync.RWMutex // held shared by who uses the descriptor besides lanes
	closed   bool         // under open
	closing  sync.Once
	endError error // of Close
}

// damage is a failure that later success would hide, so that it sticks until
// the store is opened anew.
type damage struct {
	err error
	all bool // every op fails; else those that promise stable data
}

// Info implements Store.
func (v *volume) Info() Info { return *v.info.Load() }

// Lane implements Store.
func (v *volume) Lane(l *evloop.Loop) (Lane, error) {
	if l.Workers() == nil {
		return nil, fmt.Errorf("%s on event loop %q: it has no workers for calls that block", v.path, l.Name())
	}
	lane := &volumeLane{volume: v, loop: l, ring: l.Ring(), workers: l.Workers(), count: v.changes.Add()}
	v.counters.Add(&lane.counter, l)
	return lane, nil
}

// Close writes back what the kernel still caches and closes the descriptor,
// which also gives up the lock. Whoever repeats it gets the same answer: the
// number of the descriptor may be another file's by then, and what the kernel
// could not write it has dropped.
func (v *volume) Close() error {
	v.closing.Do(func() {
		var err error
		if !v.info.Load().ReadOnly {
			err = unix.Fdatasync(v.fd)
		}
		v.open.Lock()
		v.closed = true
		v.open.Unlock()
		if err = errors.Join(err, v.closeIntents(), unix.Close(v.fd)); err != nil {
			v.endError = fmt.Errorf("close %s: %w", v.path, err)
		}
	})
	return v.endError
}

// has reports whether the kernel has not refused a yet.
func (v *volume) has(a ability) bool { return v.lacks.Load()&uint32(a) == 0 }

// forgo notes that the kernel refused a.
func (v *volume) forgo(a ability) {
	if v.lacks.Or(uint32(a))&uint32(a) != 0 {
		return
	}
	v.log.Debug("kernel refused an optional feature", "store", v.path, "feature", abilityNames[a])
	if a == punchHole {
		v.amend(func(info *Info) {
			info.Discard, info.DiscardGran, info.DiscardZeroes, info.Thin = false, 0, false, false
		})
	}
}

var abilityNames = map[ability]string{
	nowait: "RWF_NOWAIT", dsync: "RWF_DSYNC", punchHole: "FALLOC_FL_PUNCH_HOLE",
	zeroRange: "FALLOC_FL_ZERO_RANGE", seekHole: "SEEK_HOLE",
}

// admit says why op cannot start, or nil.
func (v *volume) admit(op *Op) error {
	if d := v.damage.Load(); d != nil && (d.all || v.stable(op) || op.Kind == Flush) {
		return d.err
	}
	return Check(op, v.info.Load())
}

// stable reports whether op must be on stable media when it ends.
func (v *volume) stable(op *Op) bool { return op.Kind.Changes() && (op.FUA || v.sync) }

// fail explains errno, the result of op's current call, and notes damage.
func (v *volume) fail(op *Op, errno unix.Errno) error {
	c := &op.lane.call
	err := fmt.Errorf("%v at byte %d of %s: %w", op.Kind, c.off, v.path, Classify(errno))
	if c.verb == syncCall || c.durable() && errno == unix.EIO {
		v.distrust(errno)
	}
	if c.verb == syncCall {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// distrust makes all later flushes fail. The kernel drops the pages that it
// could not write and reports that once; whoever flushes next would be told
// that its data is safe. Of direct writes it has none: what a disk's cache has lost of them
// ErrLost tells, and the disk goes on.
func (v *volume) distrust(errno error) {
	if v.direct && !v.bounces() {
		return
	}
	err := fmt.Errorf("flush %s: data written earlier may be lost since write-back failed; check the file and restart: %w", v.path, Classify(errno))
	if v.damage.CompareAndSwap(nil, &damage{err: err}) {
		v.log.Error("write-back failed: flushes of this store fail from now on", "store", v.path, "err", errno)
	}
}

// truncated makes every later op fail: a write would extend the file again and
// turn what is lost into zeroes.
func (v *volume) truncated(off int64) error {
	err := fmt.Errorf("%s ends at or before byte %d, expected %d bytes: %w", v.path, off, v.info.Load().Size, ErrTruncated)
	if old := v.damage.Swap(&damage{err: err, all: true}); old == nil || !old.all {
		v.log.Error("backing file was truncated: the store is out of service", "store", v.path, "byte", off)
	}
	return err
}

func (v *volume) setSize(size int64) { v.amend(func(info *Info) { info.Size = size }) }

// amend replaces the info by a changed copy.
func (v *volume) amend(change func(*Info)) {
	for {
		old := v.info.Load()
		info := *old
		change(&info)
		if v.info.CompareAndSwap(old, &info) {
			return
		}
	}
}
