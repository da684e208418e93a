package backstore

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Watched is a Stamper that tells when its own operations change its stamp. Who notes a
// stamp while it is Quiet, and finds another later, knows of somebody else.
type Watched interface {
	Stamper
	// Watch has the store put Disturbed into word before it begins anything that
	// changes its stamp, unless that is there. The word must last until Watch(nil).
	Watch(word *atomic.Uint64)
	// Quiet counts the changes that have begun, and reports whether all have ended.
	Quiet() (begun uint64, quiet bool)
	// Exact reports whether each change by this host makes another stamp at once, with
	// times by this host's clock. A file system in the network has another clock, and a device
	// behind the page cache is written at any time.
	Exact() bool
}

// Disturbed is what Watch puts into its word: no bit that flips makes it another.
const Disturbed = 0x1111111111111111

// tally counts the changes of one lane. Only its thread writes it.
type tally struct {
	begun, ended atomic.Uint64
	_            [6]uint64 // threads do not share a cache line
}

// tallies are those of all lanes of a volume.
type tallies struct {
	word atomic.Pointer[atomic.Uint64]
	mu   sync.Mutex
	all  []*tally
	past uint64 // changes of lanes that are closed
}

func (t *tallies) add() *tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &tally{}
	t.all = append(t.all, n)
	return n
}

func (t *tallies) remove(n *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past += n.begun.Load()
	t.all = slices.DeleteFunc(t.all, func(o *tally) bool { return o == n })
}

// begin comes before a change.
//
// INVARIANT: who finds the count as before after it has put something else than
// Disturbed into the word sees Disturbed there before the change.
func (t *tallies) begin(n *tally) {
	n.begun.Add(1)
	if w := t.word.Load(); w != nil && w.Load() != Disturbed {
		w.Store(Disturbed)
	}
}

// Watch implements Watched.
func (v *volume) Watch(word *atomic.Uint64) { v.tallies.word.Store(word) }

// Quiet implements Watched.
func (v *volume) Quiet() (begun uint64, quiet bool) {
	t := &v.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	ended := t.past
	for _, n := range t.all {
		ended += n.ended.Load() // before begun: what begins meanwhile has not ended
	}
	begun = t.past
	for _, n := range t.all {
		begun += n.begun.Load()
	}
	return begun, begun == ended
}

// Exact implements Watched.
func (v *volume) Exact() bool {
	if v.device {
		return v.direct
	}
	return v.local
}

// isLocal reports whether an open file has times by this host's clock, and exact ones.
func isLocal(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && slices.Contains(local, uint32(fs.Type))
}

// local are the file systems whose times are this host's, in nanoseconds or ticks. All
// others may be in the network, or keep times in seconds.
var local = []uint32{
	unix.EXT4_SUPER_MAGIC /* and ext2, ext3 */, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC,
	0x2fc12fc1 /* ZFS */, 0xca451a4e, /* bcachefs */
}
