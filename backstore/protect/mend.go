package protect

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/backstore"
)

// mending follows a change whose data were refused, in part or as a whole: blocks
// that nevertheless have the new data get their new tuples, all others keep the old
// ones. So each block reads as old or new, unless it is neither, and no tuple is
// made of data that nobody has written.
type mending struct {
	err    error // why the change failed
	at     int64 // first byte that has not been looked at
	memory []byte
	data   []byte // of the blocks being looked at
	tuples []byte // theirs
}

var zeroes [recoverSpan]byte

// beginMend starts to look at the blocks of a change that failed.
func (j *job) beginMend(err error) bool {
	memory, failed := unix.Mmap(-1, 0, 2*recoverSpan, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if failed != nil {
		return j.changed(err)
	}
	j.mending = &mending{err: err, at: j.op.Off, memory: memory}
	return j.mendNext()
}

// mendNext reads the next blocks and their tuples.
func (j *job) mendNext() bool {
	m, block := j.mending, int64(j.lane.store.shape.block)
	n := min(recoverSpan, j.op.Off+j.op.Length()-m.at)
	if n == 0 {
		return j.endMend()
	}
	m.data, m.tuples = m.memory[:n], m.memory[recoverSpan:][:n/block*TupleSize]
	j.data = backstore.Op{Kind: backstore.Read, Off: m.at, Data: m.data, Done: j.done}
	j.tuples = backstore.Op{Kind: backstore.Read, Off: tupleOffset + m.at/block*TupleSize, Data: m.tuples, Done: j.done}
	j.step = mendReads
	return j.launch()
}

// mendRead compares what was read with what there should be.
func (j *job) mendRead() bool {
	if j.data.Err != nil || j.tuples.Err != nil {
		return j.endMend() // nobody knows what is there
	}
	m := j.mending
	if !j.mendSpan() {
		m.at += int64(len(m.data))
		return j.mendNext()
	}
	j.tuples = backstore.Op{Kind: backstore.Write, Off: j.tuples.Off, Data: m.tuples, Done: j.done}
	j.step = mendWrites
	return j.launch()
}

// mendSpan gives blocks that have the new data their new tuples, as they lie in the
// sidecar file, and reports whether there were any.
func (j *job) mendSpan() (changed bool) {
	m, s := j.mending, j.lane.store.shape
	for i := range len(m.data) / s.block {
		block, stored := m.data[i*s.block:][:s.block], m.tuples[i*TupleSize:][:TupleSize]
		invert(stored)
		t := Tuple(stored)
		fits := !t.Escaped(s.kind) && t.Guard() == Guard(block)
		invert(stored)
		data, tuple := j.intended(m.at + int64(i*s.block))
		if !fits && bytes.Equal(block, data) && !bytes.Equal(stored, tuple) {
			copy(stored, tuple)
			changed = true
		}
	}
	return changed
}

// intended is what the change would have made of the block at off: its data, and its
// tuple as it lies in the sidecar file.
func (j *job) intended(off int64) (data, tuple []byte) {
	block := int64(j.lane.store.shape.block)
	if j.op.Kind != backstore.Write {
		return zeroes[:block], zeroes[:TupleSize]
	}
	rel := off - j.op.Off
	return j.op.Data[rel:][:block], j.buffer[rel/block*TupleSize:][:TupleSize]
}

// endMend ends the change with its error.
func (j *job) endMend() bool {
	m := j.mending
	j.mending = nil
	_ = unix.Munmap(m.memory)
	return j.changed(m.err)
}

// reserve finds room in the sidecar file for the tuples of regions, so that a change
// that has begun does not fail for lack of it. A file system that cannot is left to
// chance.
func (s *Store) reserve(first, last int) error {
	shift, block := s.regions.shift, int64(s.shape.block)
	from := tupleOffset + int64(first)<<shift/block*TupleSize
	to := min(tupleOffset+int64(last+1)<<shift/block*TupleSize, shape{size: s.end.Load(), block: s.shape.block}.fileSize())
	for {
		err := unix.Fallocate(s.regions.log.fd, unix.FALLOC_FL_KEEP_SIZE, from, to-from)
		switch err {
		case unix.EINTR:
			continue
		case nil, unix.EOPNOTSUPP, unix.ENOSYS:
			return nil
		case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
			return fmt.Errorf("room for protection information: %w: %w", backstore.ErrNoSpace, err)
		}
		return fmt.Errorf("room for protection information: %w", err)
	}
}
