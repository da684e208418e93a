package fake

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// Library is what clients of the cluster use.
func (c *Cluster) Library() (rbd.Library, error) { return (*library)(c), nil }

type library Cluster

// Connect implements rbd.Library.
func (l *library) Connect(a rbd.Account) (rbd.Client, error) {
	if err := l.Lacks(a); err != nil {
		return nil, err
	}
	c := (*Cluster)(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.away {
		c.back.Wait()
	}
	c.clients++
	c.connected++
	return &client{cluster: c, address: fmt.Sprintf("192.0.2.1:0/%d", c.clients)}, nil
}

// Lacks implements rbd.Library. The configuration file is not looked for, for there is none.
func (l *library) Lacks(a rbd.Account) error {
	if a.Keyring == "" {
		return nil
	}
	_, err := os.Stat(a.Keyring)
	return err
}

// Queue implements rbd.Library.
func (l *library) Queue() (rbd.Queue, error) { return newQueue() }

type client struct {
	cluster *Cluster
	address string
}

// Address implements rbd.Client.
func (c *client) Address() string { return c.address }

// Cluster implements rbd.Client.
func (c *client) Cluster() string { return "00000000-0000-0000-0000-00000000fa4e" }

// Ask implements rbd.Client.
func (c *client) Ask(rbd.Name) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	for c.cluster.away {
		c.cluster.back.Wait()
	}
	if c.cluster.blocked[c.address] {
		return fmt.Errorf("rados_stat: %w", unix.ESHUTDOWN)
	}
	return nil
}

// Fence implements rbd.Client.
func (c *client) Fence(address string) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	for c.cluster.away {
		c.cluster.back.Wait()
	}
	if c.cluster.blocked[c.address] {
		return fmt.Errorf("rados_blocklist_add: %w", unix.ESHUTDOWN)
	}
	c.cluster.block(address)
	return nil
}

// Close implements rbd.Client.
func (c *client) Close() error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	c.cluster.connected--
	return nil
}

// Open implements rbd.Client.
func (c *client) Open(name rbd.Name, readOnly bool) (rbd.Image, error) {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	v := c.cluster.images[name]
	switch {
	case c.cluster.called(c.address) != 0:
		return nil, fmt.Errorf("rbd_open: %w", unix.ESHUTDOWN)
	case v == nil:
		return nil, fmt.Errorf("rbd_open: %w", unix.ENOENT)
	}
	i := &image{client: c, volume: v, readOnly: readOnly, changed: make(chan struct{}, 1)}
	if !readOnly {
		v.open[i] = true
	}
	return i, nil
}

type image struct {
	client   *client
	volume   *volume
	readOnly bool
	changed  chan struct{}
	closing  sync.Once
	closed   bool // under the cluster's lock
}

// tell is called with the cluster locked.
func (i *image) tell() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// ask calls f with the cluster locked, unless it has blocked the instance.
func (i *image) ask(call string, f func() unix.Errno) error {
	c := i.client.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.away {
		c.back.Wait()
	}
	if i.closed {
		panic("fake: " + call + " of an image that is closed")
	}
	errno := c.called(i.client.address)
	if errno == 0 {
		errno = f()
	}
	if errno != 0 {
		return fmt.Errorf("%s: %w", call, errno)
	}
	return nil
}

// Geometry implements rbd.Image.
func (i *image) Geometry() (g rbd.Geometry, err error) {
	err = i.ask("rbd_stat", func() unix.Errno {
		g = rbd.Geometry{ID: i.volume.id, Pool: 1, Size: int64(len(i.volume.data)), Object: objectBytes, StripeUnit: objectBytes, Lockable: i.volume.lockable}
		return 0
	})
	return g, err
}

// Setting implements rbd.Image.
func (i *image) Setting(option string) (value string, known bool, err error) {
	err = i.ask("rbd_config_image_list", func() unix.Errno { value, known = i.volume.settings[option]; return 0 })
	return value, known, err
}

// Resize implements rbd.Image.
func (i *image) Resize(size int64) error {
	return i.ask("rbd_resize2", func() unix.Errno {
		if i.volume.owner != "" && i.volume.ownerImage != i {
			return unix.EROFS
		}
		i.volume.resize(size)
		return 0
	})
}

// Changed implements rbd.Image.
func (i *image) Changed() <-chan struct{} { return i.changed }

// Mapped implements rbd.Image.
func (i *image) Mapped(off, n int64) (mapped bool, length int64, err error) {
	err = i.ask("rbd_diff_iterate2", func() unix.Errno {
		mapped = i.volume.objects[off/objectBytes]
		for length < n && i.volume.objects[(off+length)/objectBytes] == mapped {
			length += objectBytes - (off+length)%objectBytes
		}
		length = min(length, n)
		return 0
	})
	return mapped, length, err
}

// Owner implements rbd.Image.
func (i *image) Owner() (owner string, err error) {
	err = i.ask("rbd_lock_get_owners", func() unix.Errno { owner = i.volume.owner; return 0 })
	return owner, err
}

// Owned implements rbd.Image.
func (i *image) Owned() bool {
	c := i.client.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return i.volume.ownerImage == i
}

// Watchers implements rbd.Image.
func (i *image) Watchers() (all []string, err error) {
	err = i.ask("rbd_watchers_list", func() unix.Errno { all = i.volume.watchers(); return 0 })
	return all, err
}

// Acquire implements rbd.Image.
func (i *image) Acquire() error {
	return i.ask("rbd_lock_acquire", func() unix.Errno {
		if i.volume.owner != "" && i.volume.ownerImage != i {
			return unix.EBUSY
		}
		i.volume.owner, i.volume.ownerImage = i.client.address, i
		return 0
	})
}

// Break implements rbd.Image.
func (i *image) Break(owner string) error {
	return i.ask("rbd_lock_break", func() unix.Errno {
		if i.volume.owner != owner {
			return unix.ENOENT
		}
		i.volume.owner, i.volume.ownerImage = "", nil
		i.client.cluster.block(owner)
		return 0
	})
}

// Note implements rbd.Image.
func (i *image) Note(name string) (text string, err error) {
	err = i.ask("rbd_metadata_get", func() unix.Errno { text = i.volume.notes[name]; return 0 })
	return text, err
}

// Annotate implements rbd.Image.
func (i *image) Annotate(name, text string) error {
	return i.ask("rbd_metadata_set", func() unix.Errno {
		if text == "" {
			delete(i.volume.notes, name)
		} else {
			i.volume.notes[name] = text
		}
		return 0
	})
}

// Close implements rbd.Image. A blocked instance frees nothing.
func (i *image) Close() error {
	i.closing.Do(func() {
		c := i.client.cluster
		c.mu.Lock()
		defer c.mu.Unlock()
		i.closed = true
		delete(i.volume.open, i)
		if i.volume.ownerImage == i && !c.blocked[i.client.address] {
			i.volume.owner, i.volume.ownerImage = "", nil
		}
		close(i.changed)
	})
	return nil
}

func bytesOf(io *rbd.IO) []byte { return unsafe.Slice((*byte)(io.Data), io.Len) }
