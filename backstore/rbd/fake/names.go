package fake

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// Rename implements rbd.Client, in librbd's steps.
func (c *client) Rename(from, to rbd.Name) error {
	return c.ask("rbd_rename", func() unix.Errno {
		k, v := c.cluster, c.cluster.images[from]
		switch {
		case v == nil:
			return unix.ENOENT
		case k.images[to] != nil:
			return unix.EEXIST
		}
		k.images[to] = v
		if errno := k.called(c.address); errno != 0 {
			return errno
		}
		v.listed = to
		if errno := k.called(c.address); errno != 0 {
			return errno
		}
		delete(k.images, from)
		return 0
	})
}

// Listed implements rbd.Client.
func (c *client) Listed(_ rbd.Name, id string) (name string, err error) {
	err = c.ask("rbd_list2", func() unix.Errno {
		for _, v := range c.cluster.images {
			if v.id == id {
				name = v.listed.Image
			}
		}
		return 0
	})
	return name, err
}

// Unname implements rbd.Client.
func (c *client) Unname(name rbd.Name, id string) error {
	return c.ask("rados_remove", func() unix.Errno {
		if v := c.cluster.images[name]; v != nil && v.id == id {
			delete(c.cluster.images, name)
		}
		return 0
	})
}

// ask calls f with the cluster locked, unless it has blocked the instance.
func (c *client) ask(call string, f func() unix.Errno) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	for c.cluster.away {
		c.cluster.back.Wait()
	}
	errno := c.cluster.called(c.address)
	if errno == 0 {
		errno = f()
	}
	if errno != 0 {
		return fmt.Errorf("%s: %w", call, errno)
	}
	return nil
}

// isParent reports whether there is a clone of a volume's snapshots.
func (c *Cluster) isParent(of *volume) bool {
	for _, v := range c.images {
		if v.parent == of {
			return true
		}
	}
	return false
}
