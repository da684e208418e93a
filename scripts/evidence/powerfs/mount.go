package powerfs

import (
	"context"
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Mount shows the disk at a directory until unmount is called, which works with files in
// use too. It needs root.
func Mount(d *Disk, dir string) (unmount func() error, err error) {
	root := &node{disk: d, number: rootNumber}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions:   fuse.MountOptions{DirectMountStrict: true, FsName: "powerfs", Name: "powerfs", MaxWrite: 1 << 20, DirectMountFlags: syscall.MS_NOSUID},
		RootStableAttr: &fs.StableAttr{Ino: rootNumber},
	})
	if err != nil {
		return nil, fmt.Errorf("mount at %s: %w", dir, err)
	}
	return func() error {
		err := unix.Unmount(dir, unix.MNT_DETACH)
		go server.Wait() // ends with the last open file
		return err
	}, nil
}

// node is an inode as FUSE sees it.
type node struct {
	fs.Inode
	disk   *Disk
	number uint64
}

// with calls f with the inode, unless the power is off.
func (n *node) with(f func(*inode) syscall.Errno) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.disk.down {
		return syscall.EIO
	}
	return f(n.disk.inodes[n.number])
}

func (i *inode) attr(out *fuse.Attr) {
	out.Ino, out.Mode, out.Size, out.Nlink = i.number, i.mode, uint64(len(i.live.data)), 1
	out.Blocks, out.Blksize = (out.Size+Sector-1)/Sector, 4096
	out.SetTimes(&i.live.modified, &i.live.modified, &i.live.modified)
}

// changing is with, for what a loss of power may come before.
func (n *node) changing(f func(*inode) syscall.Errno) syscall.Errno {
	return n.with(func(i *inode) syscall.Errno {
		if !n.disk.spend() {
			return syscall.EIO
		}
		return f(i)
	})
}

// child makes what FUSE gets for an inode.
func (n *node) child(ctx context.Context, i *inode, out *fuse.EntryOut) *fs.Inode {
	i.attr(&out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, number: i.number}, fs.StableAttr{Ino: i.number, Mode: i.mode & syscall.S_IFMT})
}

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (found *fs.Inode, errno syscall.Errno) {
	errno = n.with(func(i *inode) syscall.Errno {
		c := n.disk.inodes[i.live.names[name]]
		if c == nil {
			return syscall.ENOENT
		}
		found = n.child(ctx, c, out)
		return 0
	})
	return found, errno
}

// enter makes a name.
func (n *node) enter(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (made *fs.Inode, errno syscall.Errno) {
	errno = n.changing(func(i *inode) syscall.Errno {
		c := n.disk.add(mode)
		i.rename(renaming{name: c.number})
		made = n.child(ctx, c, out)
		return 0
	})
	return made, errno
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, _ uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	made, errno := n.enter(ctx, name, mode|syscall.S_IFREG, out)
	return made, nil, 0, errno
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.enter(ctx, name, mode|syscall.S_IFDIR, out)
}

// Mknod implements fs.NodeMknoder.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.enter(ctx, name, mode, out)
}

// Link implements fs.NodeLinker.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (made *fs.Inode, errno syscall.Errno) {
	number := target.(*node).number
	errno = n.changing(func(i *inode) syscall.Errno {
		if i.live.names[name] != 0 {
			return syscall.EEXIST
		}
		i.rename(renaming{name: number})
		made = n.child(ctx, n.disk.inodes[number], out)
		return 0
	})
	return made, errno
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		i.rename(renaming{name: 0})
		return 0
	})
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		if len(n.disk.inodes[i.live.names[name]].live.names) > 0 {
			return syscall.ENOTEMPTY
		}
		i.rename(renaming{name: 0})
		return 0
	})
}

// Rename implements fs.NodeRenamer. Between two directories a loss of power may leave both
// names, or none.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		target := n.disk.inodes[parent.(*node).number]
		switch {
		case flags&^unix.RENAME_NOREPLACE != 0:
			return syscall.EINVAL
		case flags&unix.RENAME_NOREPLACE != 0 && target.live.names[to] != 0:
			return syscall.EEXIST
		}
		number := i.live.names[name]
		if target == i {
			i.rename(renaming{name: 0, to: number})
			return 0
		}
		i.rename(renaming{name: 0})
		target.rename(renaming{to: number})
		return 0
	})
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var entries []fuse.DirEntry
	errno := n.with(func(i *inode) syscall.Errno {
		for name, number := range i.live.names {
			entries = append(entries, fuse.DirEntry{Name: name, Ino: number, Mode: n.disk.inodes[number].mode})
		}
		return 0
	})
	return fs.NewListDirStream(entries), errno
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.with(func(i *inode) syscall.Errno {
		i.attr(&out.Attr)
		return 0
	})
}

// Setattr implements fs.NodeSetattrer. Only the size needs fsync.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		if size, ok := in.GetSize(); ok {
			i.do(change{size: int64(size)})
		}
		if mode, ok := in.GetMode(); ok {
			i.mode = i.mode&syscall.S_IFMT | mode&0o7777
		}
		if t, ok := in.GetMTime(); ok {
			i.live.modified = t
		}
		i.attr(&out.Attr)
		return 0
	})
}

// Open implements fs.NodeOpener.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, n.with(func(*inode) syscall.Errno { return 0 })
}

// Read implements fs.NodeReader.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (result fuse.ReadResult, errno syscall.Errno) {
	errno = n.with(func(i *inode) syscall.Errno {
		got := 0
		if off < int64(len(i.live.data)) {
			got = copy(dest, i.live.data[off:])
		}
		result = fuse.ReadResultData(dest[:got])
		return 0
	})
	return result, errno
}

// Write implements fs.NodeWriter.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	return uint32(len(data)), n.changing(func(i *inode) syscall.Errno {
		i.do(change{off: off, data: data})
		return 0
	})
}

// Allocate implements fs.NodeAllocater: room, holes and zeroes.
func (n *node) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		end, length := off+size, uint64(len(i.live.data))
		if mode&unix.FALLOC_FL_KEEP_SIZE == 0 && end > length {
			i.do(change{size: int64(end)})
			length = end
		}
		if end = min(end, length); mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0 && off < end {
			i.do(change{off: int64(off), data: make([]byte, end-off)})
		}
		return 0
	})
}

// Fsync implements fs.NodeFsyncer, for directories too.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return n.changing(func(i *inode) syscall.Errno {
		i.sync()
		return 0
	})
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 20
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = blocks, blocks, blocks, blocks, blocks
	return 0
}
