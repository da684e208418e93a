package rbd

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"lunar/backstore"
)

// The stamp of an image says whose lock protects it. As long as that is one process's,
// nobody else writes; nothing tells of writes once it was free. Whoever comes after a crash
// finds the lock still there, and knows that the image is as it was. After an orderly end
// it is free, and there is no stamp. In a cluster the same process may have had the lock before
// others had it: the stamp says for which claim the process has it, too.

func digest(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:]) &^ (1 << 63) // which would say that it is a block device
}

// stampOf is that of an image, by its identity, while an instance has its lock for a claim of a
// cluster; empty: for none.
func stampOf(identity, instance, epoch string) backstore.Stamp {
	holder := bare(instance)
	if epoch != "" {
		holder += " " + epoch
	}
	return backstore.Stamp{Medium: [3]uint64{digest(identity)}, State: [3]uint64{digest(holder)}}
}

// found is the stamp of what was there before the lock was taken; zero: nothing is known. One
// that says that somebody else had the image after this server's last process has a time,
// which is later than that process can have written.
func found(c *scene, identity string) (s backstore.Stamp) {
	switch {
	case c.kept():
		s = stampOf(identity, c.owner, c.epoch)
	case c.crashed():
		s = stampOf(identity, "", "")
		s.State = [3]uint64{2: uint64(time.Now().UnixNano())}
	}
	return s
}
