// Package powerfs is a file system in memory that a loss of power does to what the
// manuals allow: of the data of a file it keeps what was there at its last fsync(2), of
// a directory the names at the last fsync(2) of the directory, and of everything since
// then nothing, or any part of it in any order.
//
// Disk is the medium, a pure state; Mount shows it through FUSE.
package powerfs

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Sector is how much of a write a loss of power leaves whole, in bytes.
const Sector = 512

// rootNumber is the inode number of the root directory.
const rootNumber = 1

// Disk is the medium and what the operating system has not written to it yet.
type Disk struct {
	mu     sync.Mutex
	inodes map[uint64]*inode
	next   uint64
	down   bool // the power is off
	left   int  // changes until it goes
}

// inode is a file or a directory: as programs see it, as it is on the medium, and how
// the one came of the other.
type inode struct {
	number       uint64
	mode         uint32
	live, stable state
	changes      []change   // of data
	renames      []renaming // of names
}

type state struct {
	data     []byte
	names    map[string]uint64 // of a directory
	modified time.Time
}

// change of a file: data at an offset, or another size.
type change struct {
	off  int64
	data []byte
	size int64 // where data is nil
}

// renaming of a directory: names that it got, and names that it lost (0), at once.
type renaming map[string]uint64

// NewDisk returns an empty one.
func NewDisk() *Disk {
	d := &Disk{inodes: map[uint64]*inode{}, next: rootNumber, left: math.MaxInt}
	root := d.add(syscall.S_IFDIR | 0o700)
	root.stable.names = map[string]uint64{}
	return d
}

func (d *Disk) add(mode uint32) *inode {
	n := &inode{number: d.next, mode: mode}
	d.next++
	n.live.modified = time.Now()
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.live.names, n.stable.names = map[string]uint64{}, map[string]uint64{}
	}
	n.stable.modified = n.live.modified
	d.inodes[n.number] = n
	return n
}

// do changes a file.
func (n *inode) do(c change) {
	if c.data != nil {
		c.data = slices.Clone(c.data)
	}
	n.live.data = c.apply(n.live.data)
	n.live.modified = time.Now()
	n.changes = append(n.changes, c)
}

func (c change) apply(data []byte) []byte {
	end := c.size
	if c.data != nil {
		end = max(int64(len(data)), c.off+int64(len(c.data)))
	}
	if end < int64(len(data)) {
		clear(data[end:])
		data = data[:end]
	}
	if grow := int(end) - len(data); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	if c.data != nil {
		copy(data[c.off:], c.data)
	}
	return data
}

// rename changes a directory.
func (n *inode) rename(r renaming) {
	r.apply(n.live.names)
	n.live.modified = time.Now()
	n.renames = append(n.renames, r)
}

func (r renaming) apply(names map[string]uint64) {
	for name, number := range r {
		if number == 0 {
			delete(names, name)
		} else {
			names[name] = number
		}
	}
}

// sync makes an inode stable.
func (n *inode) sync() {
	for _, c := range n.changes {
		n.stable.data = c.apply(n.stable.data)
	}
	for _, r := range n.renames {
		r.apply(n.stable.names)
	}
	n.stable.modified = n.live.modified
	n.changes, n.renames = nil, nil
}

// Limit takes the power away when so many further changes have been made.
func (d *Disk) Limit(changes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = changes
}

// Down reports whether the power is off.
func (d *Disk) Down() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

// spend counts a change that is to be made, and reports whether there is power for it.
func (d *Disk) spend() bool {
	d.left--
	d.down = d.down || d.left < 0
	return !d.down
}

// Loss says what a loss of power leaves of what was not made stable.
type Loss int

// Kinds of loss.
const (
	All  Loss = iota // nothing of it is left
	Some             // of data any sectors, of the names of a directory those until some time
)

// Cut takes the power away, if it has not gone yet: nothing can be read or written any more.
// The result is the disk as it is found when the power is back.
func (d *Disk) Cut(loss Loss, random *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = true
	after := &Disk{inodes: map[uint64]*inode{}, next: d.next, left: math.MaxInt}
	for _, number := range slices.Sorted(maps.Keys(d.inodes)) {
		n := d.inodes[number]
		left := state{slices.Clone(n.stable.data), maps.Clone(n.stable.names), n.stable.modified}
		if loss == Some {
			n.keepSome(&left, random)
		}
		after.inodes[number] = &inode{number: number, mode: n.mode, live: left, stable: state{slices.Clone(left.data), maps.Clone(left.names), left.modified}}
	}
	after.forget()
	return after
}

func (n *inode) keepSome(left *state, random *rand.Rand) {
	for _, c := range n.changes {
		for len(c.data) > Sector {
			part := int(Sector - c.off%Sector)
			if random.IntN(2) == 0 {
				left.data = change{off: c.off, data: c.data[:part]}.apply(left.data)
			}
			c.off, c.data = c.off+int64(part), c.data[part:]
		}
		if random.IntN(2) == 0 {
			left.data = c.apply(left.data)
		}
	}
	for _, r := range n.renames[:random.IntN(len(n.renames)+1)] {
		r.apply(left.names)
	}
	if random.IntN(2) == 0 {
		left.modified = n.live.modified
	}
}

// forget drops what has no name.
func (d *Disk) forget() {
	reached := map[uint64]bool{}
	var visit func(number uint64)
	visit = func(number uint64) {
		if n := d.inodes[number]; n != nil && !reached[number] {
			reached[number] = true
			for _, child := range n.live.names {
				visit(child)
			}
		}
	}
	visit(rootNumber)
	maps.DeleteFunc(d.inodes, func(number uint64, _ *inode) bool { return !reached[number] })
}

// Add puts a file into the root directory, stable.
func (d *Disk) Add(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.add(syscall.S_IFREG | 0o600)
	n.do(change{data: data})
	root := d.inodes[rootNumber]
	root.rename(renaming{name: n.number})
	n.sync()
	root.sync()
}
