// Package cache is the NUMA-partitioned block cache without its I/O: which
// partition and node a byte belongs to, which blocks are resident, who may read
// or change them now, who has to wait, what goes when room is needed, and what
// is still to be written to the backing store. It never reads or writes data
// and never blocks: the caller moves the bytes and tells the partition when it
// has.
//
// The data of slot s of a partition lies at byte s*BlockSize of the arena that
// the caller keeps for the partition. What is known of the blocks lies in one
// piece of memory without pointers, which may be shared, so that another
// process can attach it after a crash (see Attach).
//
// # A process that is killed
//
// It may end between any two stores, and what it has stored is there: that is
// all that is asked of the memory. A partition that tells a Journal what is dirty
// can be attached then, by these orders:
//
//	a sub-block becomes dirty      its data, the journal, the record's dirty bit,
//	                               its valid bit, the answer to the initiator
//	a sub-block becomes clean      the backing store has it, the journal, the
//	                               record's dirty bit
//	a clean one is overwritten     its valid bit goes before its data change
//	a block enters                 the record, empty, and then its state
//	a block leaves                 its state, and then the record
//
// So whatever is valid and not dirty in a record was never half-written and is
// what the backing store has; and what the journal says is dirty is newer than
// the backing store, or the same. A dirty sub-block stays valid while it is
// overwritten, and there is no other copy of what it holds: who overwrites it (see
// Grant.Dirty) must do so in a way that a process which attaches the memory can
// complete.
//
// # Rules for callers
//
// A partition may be used by any number of threads; every method takes the
// partition's lock for a short, bounded time. A command that needs several
// blocks takes them in ascending order of their addresses, keeps one lock at a
// time, and may hold pins and claims while it waits for the next block; because
// of the order, no circle of waiting commands can form.
//
// A claim (Fill or Granted) is always ended by its End method, also if the
// command has been aborted; a pin always by Unpin. Whatever these return are
// waiters that can go on: the caller hands each to the thread that it belongs
// to, which then asks the partition again.
package cache
