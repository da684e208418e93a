package fake

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// objectBytes is how long an image's objects are: short, so that tests meet several.
const objectBytes = 64 << 10

// Cluster is a Ceph cluster with images.
type Cluster struct {
	mu      sync.Mutex
	images  map[rbd.Name]*volume
	blocked map[string]bool // addresses of instances
	clients int             // that there ever were
	created int             // images, as many
	snapped int             // snapshots, as many
	away    bool
	back    sync.Cond // away has ended

	connected int // clients that there are

	jobs  []job // of operations
	more  sync.Cond
	ended bool
	group sync.WaitGroup

	rule func(rbd.IO) unix.Errno

	calls int // of control that are left until the next one kills its instance; negative: no end
}

// volume is an image as the cluster has it.
type volume struct {
	id         string
	listed     rbd.Name // the name by which it is listed
	data       []byte
	objects    []bool // that there are
	lockable   bool
	settings   map[string]string
	notes      map[string]string
	owner      string // address of the instance with the lock
	ownerImage *image
	snapshots  []snapshot
	parent     *volume // of a clone; nil: it is none
	open       map[*image]bool
}

// New makes a cluster that fails with what rule returns for an operation; nil: with
// nothing.
func New(rule func(rbd.IO) unix.Errno) *Cluster {
	c := &Cluster{images: map[rbd.Name]*volume{}, blocked: map[string]bool{}, rule: rule, calls: -1}
	c.back.L, c.more.L = &c.mu, &c.mu
	for range 2 {
		c.group.Go(c.work)
	}
	return c
}

// Close ends the cluster's goroutines, once nothing is under way.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.ended = true
	c.more.Broadcast()
	c.mu.Unlock()
	c.group.Wait()
}

// Create makes an image of zeroes.
func (c *Cluster) Create(name string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := rbd.ParseName(name)
	if err != nil {
		panic(err)
	}
	c.create(n).resize(size)
}

// create is called with the cluster locked.
func (c *Cluster) create(n rbd.Name) *volume {
	c.created++
	v := &volume{id: fmt.Sprintf("%x", c.created), listed: n, lockable: true, settings: map[string]string{}, notes: map[string]string{}, open: map[*image]bool{}}
	c.images[n] = v
	return v
}

// With changes what an image has: its features, settings and notes.
func (c *Cluster) With(name string, lockable bool, settings, notes map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.of(name)
	v.lockable = lockable
	maps.Copy(v.settings, settings)
	maps.Copy(v.notes, notes)
}

// Resize is done by somebody who has nothing to do with the images that are open.
func (c *Cluster) Resize(name string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(name).resize(size)
}

// Block puts an instance on the blocklist.
func (c *Cluster) Block(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.block(address)
}

// Kill has the instance that makes the n-th control call from now on die: neither that call nor
// any later one of its happens.
func (c *Cluster) Kill(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = n
}

// called is called with the cluster locked, before each control call of an instance.
func (c *Cluster) called(address string) unix.Errno {
	if c.calls--; c.calls == 0 {
		c.block(address)
	}
	if c.blocked[address] {
		return unix.ESHUTDOWN
	}
	return 0
}

func (c *Cluster) block(address string) {
	c.blocked[address] = true
	c.forget(address)
}

// Die has the cluster forget the watches of an instance, as it does half a minute after its
// process was killed. Its lock stays.
func (c *Cluster) Die(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(address)
}

func (c *Cluster) forget(address string) {
	for _, v := range c.images {
		maps.DeleteFunc(v.open, func(i *image, _ bool) bool { return i.client.address == address })
	}
}

// Away has the cluster answer nothing until it is back.
func (c *Cluster) Away(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = is
	c.back.Broadcast()
	c.more.Broadcast()
}

// Connected is how many instances there are.
func (c *Cluster) Connected() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected
}

// Owner is the address of the instance that has the lock of an image.
func (c *Cluster) Owner(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(name).owner
}

// Size is that of an image in bytes.
func (c *Cluster) Size(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.of(name).data))
}

// Contents are what an image holds.
func (c *Cluster) Contents(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.of(name).data)
}

// Names are those of all images, and what they are listed by.
func (c *Cluster) Names() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]string{}
	for n, v := range c.images {
		all[n.String()] = v.listed.String()
	}
	return all
}

// Noted are the notes of an image.
func (c *Cluster) Noted(name string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.of(name).notes)
}

func (c *Cluster) of(name string) *volume {
	n, err := rbd.ParseName(name)
	if err != nil || c.images[n] == nil {
		panic("fake: no image " + name)
	}
	return c.images[n]
}

func (v *volume) resize(size int64) {
	data := make([]byte, size)
	copy(data, v.data)
	objects := make([]bool, (size+objectBytes-1)/objectBytes)
	copy(objects, v.objects)
	v.data, v.objects = data, objects
	for i := range v.open {
		i.tell()
	}
}

// job is an operation under way.
type job struct {
	queue *queue
	image *image
	io    rbd.IO
	token uint32
}

// work does operations, the newest first.
func (c *Cluster) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.jobs) == 0 || c.away {
			if c.ended {
				return
			}
			c.more.Wait()
		}
		j := c.jobs[len(c.jobs)-1]
		c.jobs = c.jobs[:len(c.jobs)-1]
		result := c.do(&j)
		c.mu.Unlock()
		j.queue.end(rbd.Ended{Token: j.token, Result: result})
		c.mu.Lock()
	}
}

// do returns what librbd does: bytes read, or a negative errno.
func (c *Cluster) do(j *job) int64 {
	v := j.image.volume
	if c.rule != nil {
		if errno := c.rule(j.io); errno != 0 {
			return -int64(errno)
		}
	}
	switch {
	case c.blocked[j.image.client.address]:
		return -int64(unix.ESHUTDOWN)
	case j.io.Kind != rbd.ReadIO && (j.image.readOnly || v.ownerImage != j.image && v.owner != ""):
		return -int64(unix.EROFS)
	case j.io.Kind != rbd.ReadIO && j.io.Off+j.io.Len > int64(len(v.data)):
		return -int64(unix.EINVAL)
	}
	return v.transfer(&j.io)
}

func (v *volume) transfer(io *rbd.IO) int64 {
	from := min(io.Off, int64(len(v.data)))
	to := min(io.Off+io.Len, int64(len(v.data)))
	switch io.Kind {
	case rbd.ReadIO:
		return int64(copy(bytesOf(io), v.data[from:to]))
	case rbd.WriteIO:
		copy(v.data[from:to], bytesOf(io))
		for i := from / objectBytes; i*objectBytes < to; i++ {
			v.objects[i] = true
		}
	case rbd.ZeroIO:
		clear(v.data[from:to])
		for i := (from + objectBytes - 1) / objectBytes; min((i+1)*objectBytes, int64(len(v.data))) <= to && i < int64(len(v.objects)); i++ {
			v.objects[i] = false
		}
	}
	return 0
}

// watchers are the addresses of the instances that have the image open.
func (v *volume) watchers() []string {
	all := map[string]bool{}
	for i := range v.open {
		all[i.client.address] = true
	}
	return slices.Sorted(maps.Keys(all))
}
