package fake

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// snapshot is a copy of an image.
type snapshot struct {
	rbd.Snapshot
	data    []byte
	objects []bool
}

// Snapshots implements rbd.Image.
func (i *image) Snapshots() (all []rbd.Snapshot, err error) {
	err = i.ask("rbd_snap_list", func() unix.Errno {
		for _, s := range i.volume.snapshots {
			all = append(all, s.Snapshot)
		}
		return 0
	})
	return all, err
}

// Snapped is how many snapshots there ever were.
func (c *Cluster) Snapped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapped
}

func (v *volume) snapshot(name string) int {
	return slices.IndexFunc(v.snapshots, func(s snapshot) bool { return s.Name == name })
}

// Snap implements rbd.Image. The cluster's clock is a second ahead.
func (i *image) Snap(name string) error {
	return i.ask("rbd_snap_create", func() unix.Errno {
		v := i.volume
		switch {
		case v.owner != "" && v.ownerImage != i, i.readOnly:
			return unix.EROFS
		case v.snapshot(name) >= 0:
			return unix.EEXIST
		}
		i.client.cluster.snapped++
		v.snapshots = append(v.snapshots, snapshot{rbd.Snapshot{Name: name, Size: int64(len(v.data)), At: time.Now().Add(time.Second)}, slices.Clone(v.data), slices.Clone(v.objects)})
		return 0
	})
}

// Unsnap implements rbd.Image.
func (i *image) Unsnap(name string) error {
	return i.ask("rbd_snap_remove", func() unix.Errno {
		at := i.volume.snapshot(name)
		if at < 0 {
			return unix.ENOENT
		}
		i.volume.snapshots = slices.Delete(i.volume.snapshots, at, at+1)
		return 0
	})
}

// Clone implements rbd.Image.
func (i *image) Clone(name string, to rbd.Name) error {
	return i.ask("rbd_clone3", func() unix.Errno {
		c, at := i.client.cluster, i.volume.snapshot(name)
		switch {
		case at < 0:
			return unix.ENOENT
		case c.images[to] != nil:
			return unix.EEXIST
		}
		v := c.create(to)
		v.data, v.objects = slices.Clone(i.volume.snapshots[at].data), slices.Clone(i.volume.snapshots[at].objects)
		v.notes, v.parent = maps.Clone(i.volume.notes), i.volume
		return 0
	})
}

// Remove implements rbd.Client.
func (c *client) Remove(name rbd.Name) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	errno := c.cluster.called(c.address)
	switch v := c.cluster.images[name]; {
	case errno != 0:
	case v == nil:
		errno = unix.ENOENT
	case len(v.open) > 0:
		errno = unix.EBUSY
	case len(v.snapshots) > 0, c.cluster.isParent(v):
		errno = unix.ENOTEMPTY
	}
	if errno != 0 {
		return fmt.Errorf("rbd_remove: %w", errno)
	}
	delete(c.cluster.images, name)
	return nil
}
