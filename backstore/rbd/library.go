package rbd

import (
	"fmt"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Library is librbd with librados, or what stands for them.
type Library interface {
	// Connect makes a client instance of a cluster. It waits for a monitor, at most
	// for some seconds.
	Connect(Account) (Client, error)
	// Lacks is what Connect could not read on this machine. It asks no cluster.
	Lacks(Account) error
	// Queue makes one for the event thread that calls it.
	Queue() (Queue, error)
}

// Account says which cluster, and as whom.
type Account struct {
	Config  string // path of the cluster's configuration file (ceph.conf)
	User    string // without "client."
	Keyring string // path of the file with the user's key; empty: where the configuration says
}

// Client is one instance, known to the cluster by its address. Its methods may be called
// by any number of goroutines.
type Client interface {
	// Address is that of the instance, as the blocklist names it: IP:PORT/NONCE.
	Address() string
	// Cluster is the cluster's fsid.
	Cluster() string
	// Open opens an image. One that is open read-only hears of no changes, has no lock, and
	// must not be written to.
	Open(name Name, readOnly bool) (Image, error)
	// Ask asks for an object of the pool and namespace of a name, and returns when the cluster
	// has answered, also that there is none.
	Ask(of Name) error
	// Fence puts an instance on the cluster's blocklist for FenceTime, and returns when
	// nothing that it asks for from now on is done any more.
	Fence(address string) error
	// Remove removes an image that nobody has open.
	Remove(name Name) error
	// Rename gives an image another name, which nothing has, in its pool and namespace. It may
	// be open. What is broken off may leave it with both names, of which one is listed.
	Rename(from, to Name) error
	// Listed is the name by which an image, told by its ID, is listed in the pool and namespace
	// of a name; empty: it is not.
	Listed(in Name, id string) (string, error)
	// Unname takes a name away that Rename has left to an image, if it is that image's.
	Unname(name Name, id string) error
	// Close ends the instance, whose images are closed.
	Close() error
}

// FenceTime is for how long an instance is fenced: much longer than a machine stands still
// whose process could go on with what it has sent before.
const FenceTime = 7 * 24 * time.Hour

// Name is that of an image: POOL/IMAGE, or POOL/NAMESPACE/IMAGE.
type Name struct{ Pool, Namespace, Image string }

// ParseName reads what String writes.
func ParseName(s string) (Name, error) {
	parts := strings.Split(s, "/")
	n := Name{Pool: parts[0], Image: parts[len(parts)-1]}
	if len(parts) == 3 {
		n.Namespace = parts[1]
	}
	for _, p := range parts {
		if p == "" || strings.ContainsAny(p, "@ \t") || len(parts) < 2 || len(parts) > 3 {
			return Name{}, fmt.Errorf("found %q, expected POOL/IMAGE or POOL/NAMESPACE/IMAGE", s)
		}
	}
	return n, nil
}

// String is how the rbd command and a configuration name it.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Pool + "/" + n.Image
	}
	return n.Pool + "/" + n.Namespace + "/" + n.Image
}

// Geometry is how an image lies on its objects.
type Geometry struct {
	ID         string // of the image, unique in its pool, which a rename keeps
	Pool       int64  // number of the pool, which a rename keeps
	Size       int64  // bytes
	Object     int64  // bytes of an object
	StripeUnit int64  // bytes in a row that lie in one object
	Lockable   bool   // has the feature exclusive-lock
}

// Snapshot is what an image held at a moment.
type Snapshot struct {
	Name string
	Size int64     // bytes
	At   time.Time // by the clocks of the cluster
}

// Image is an open image. Its methods may block, and may be called by any number of
// goroutines.
type Image interface {
	Geometry() (Geometry, error)
	// Setting returns an option as librbd has it for this image: of the image, the pool or
	// the instance; false: librbd does not know it.
	Setting(option string) (value string, known bool, err error)
	Resize(size int64) error
	// Changed is sent to when somebody has changed the image, such as its size, and
	// closed by Close.
	Changed() <-chan struct{}
	// Mapped returns whether there is data at off, and for how many bytes that is so, at
	// most n.
	Mapped(off, n int64) (mapped bool, length int64, err error)

	// Owner is the address of the instance that has the exclusive lock; empty: none.
	Owner() (string, error)
	// Owned reports whether this image has it. It does not block.
	Owned() bool
	// Watchers are the addresses of the instances that have the image open and are alive,
	// or were until some seconds ago.
	Watchers() ([]string, error)
	// Acquire takes the lock, and keeps it until Close. It must be nobody's.
	Acquire() error
	// Break puts an owner on the blocklist and frees the lock.
	Break(owner string) error
	// Note returns what Annotate has stored with the image by a name; empty: nothing.
	Note(name string) (string, error)
	// Annotate stores it; empty text removes it.
	Annotate(name, text string) error

	// Snapshots are those of the image.
	Snapshots() ([]Snapshot, error)
	// Snap makes one of everything that has ended. The image has the lock.
	Snap(name string) error
	// Unsnap removes one. Clones of it live on.
	Unsnap(name string) error
	// Clone makes an image of a snapshot, where there is none, in the same cluster. It is like
	// its parent in all else, and has its notes.
	Clone(snapshot string, to Name) error

	// Close closes the image, on which nothing is under way, and frees its lock.
	Close() error
}

// Kind is what an IO does.
type Kind uint8

// The kinds of IO.
const (
	ReadIO  Kind = iota
	WriteIO      // within one object it is there wholly or not at all
	ZeroIO       // the range reads as zeroes, and has given back what it could
)

// IO is one operation. Data is memory of Len bytes that is not of the Go heap, and
// the library's until the operation has ended.
type IO struct {
	Kind Kind
	Off  int64
	Len  int64
	Data unsafe.Pointer
}

// Ended is an operation that has ended.
type Ended struct {
	Token  uint32 // that it was started with
	Result int64  // bytes read, or a negative errno
}

// Queue is where one event thread's operations end, on images of any number of
// instances. Its methods do not block, do not allocate in the long run, and belong to that
// thread.
type Queue interface {
	// Start begins an operation. A token is free again when its operation was reaped.
	// Tokens are small: memory is kept for the largest. An error says that nothing began.
	Start(image Image, io IO, token uint32) syscall.Errno
	// Reap takes operations that have ended, as many as out has room for.
	Reap(out []Ended) int
	// Arm has FD become readable when an operation ends from now on, once. It reports
	// whether one has ended before. Reap undoes it.
	Arm() (came bool)
	// FD is an eventfd that is never read.
	FD() int
	// Close ends the queue, in which nothing is under way.
	Close()
}
