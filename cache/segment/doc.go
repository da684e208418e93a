// Package segment is the part of the cache that outlives the process: a file in
// shared memory (tmpfs such as /dev/shm, or hugetlbfs) with a header, a journal
// of the dirty ranges and named areas, which hold the cache's index and block
// data and mean nothing here. A new process attaches the file after a clean
// shutdown, an upgrade, kill -9 or a crash, and finds every range that was
// marked dirty.
//
// # What is promised
//
// What a process has stored before it was killed, at whichever instruction,
// is in the memory; the order of stores here is such that every prefix of them
// is a state that a reader understands. Nothing is promised for a power cut, a
// kernel crash or a reboot: shared memory does not survive them, and what must
// survive is to be in the backing store (write: through or sync, FUA,
// SYNCHRONIZE CACHE).
//
// # Who has it
//
// The process that holds a flock(2) on the file. After a kill the kernel may go on
// reading into the segment's memory for a while; whoever starts such reads makes
// the kernel keep the open file (FD), and with it the lock, until they have ended.
// Close and Detach give the lock up themselves.
//
// # Layout
//
// All numbers are 8-byte words in the machine's byte order; strings are bytes.
//
//	offset 0     header, one page, written once: magic, format, identity,
//	             geometry, areas; CRC32C in its last word
//	offset 4096  two copies of the state (clean or open, generation, build,
//	             checksums of areas): always the older one is overwritten
//	offset 8192  the journal: a record of 64 bytes for every slot
//	then         the areas, each at a multiple of a page of its kind
//
// # The journal
//
// A record says which block of which volume a slot holds and which of its
// sub-blocks are dirty:
//
//	word 0    sequence: which of two slots of one block is the newer one
//	word 1    volume
//	word 2    block
//	word 3    slot, and in its upper half the CRC32C of salt, words 0 to 2 and slot
//	word 4,5  32 dirty bits each, and in the upper half the CRC32C that begins
//	          with that of word 3 and covers bits and which half; 0 if none is dirty
//	word 6,7  0
//
// Words 0 to 3 change only while nothing is dirty, so a record that is torn
// there says nothing yet. A dirty bit and its checksum are one word, changed by
// compare and swap: it cannot be torn, and threads may mark one slot at once.
//
// # Order of data and marks
//
// A sub-block that was not valid is marked dirty after its data is there. One
// that was valid is marked before the data is changed, or it would be taken for
// clean while it holds half of a write. In both cases before the write is
// acknowledged. A sub-block is marked clean after the backing store has it. When
// a block moves to a fresh slot, the fresh one is marked dirty before the old
// one is marked clean. (Package cache does not need that: it makes a sub-block
// invalid rather than dirty while it is overwritten, and moves clean blocks only.
// While a dirty one is overwritten, package tier has the new data in an area of its
// own, from which the next process completes it.)
package segment
