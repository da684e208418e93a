// Package tier puts the block cache in front of a backing store: a Cache is
// shared by all volumes of the server, and Wrap makes of each backing store one
// whose lanes serve hits from memory.
//
// # Way of an operation
//
// TryNow serves what needs nothing but memory: reads of resident data, and writes
// into one block. Everything else is a transfer: it is cut into pieces, one for
// each cache block, and goes through steps, each of which may end at once or
// later, always on the thread of the lane.
//
//	read     pieces are independent: a hit is copied, what is missing is filled
//	         from below into block memory, what may not enter goes around the cache
//	write    all pieces are claimed in ascending order, then: what is missing of
//	         partly covered sub-blocks is filled (back), the data go below in one
//	         write (through, sync, FUA, or where there was no room), they are
//	         copied into the blocks, the claims end
//	zeroes,  edges that cover sub-blocks in part are written as zeroes (back); the
//	discard  rest is dropped from the cache while the store below works on it
//	flush    (back) a sweep writes all that is dirty, in order of address, then
//	         the store below is flushed
//	map      (back) what is dirty is provisioned, whatever the store below says
//
// Who has to wait for a block is queued in its partition and resumed by a Post
// to its own event thread.
//
// # Policies
//
// Through: a write is acknowledged when the store below has it; the cache holds
// no dirty data. Back: when it is in the cache; with FUA, when it is on stable
// media.
//
// # Dirty data
//
// A flusher for each volume with policy Back writes dirty blocks in order of
// address, small neighbours merged, when there are many of them or they have been there
// for some time. Dirty bytes are bounded, for each volume and in all: a write
// that finds no room waits. What the store below refuses stays dirty and is tried
// again; meanwhile writes of that volume go through, so that the initiator
// learns of the trouble rather than waits.
//
// # Coherence
//
// A command sees what those before it have done because all of them, whatever
// they are, go through lanes of the volume: UNMAP and WRITE SAME drop or overwrite
// what is cached while the store below works on it, COMPARE AND WRITE and VERIFY
// read and write, GET LBA STATUS maps. A command that copies, within a volume or
// between two, is coherent in the same way if it reads and writes through lanes,
// as EXTENDED COPY would have to; none may ask the store below by itself.
//
// # Size
//
// Resize changes the size of a volume in use (resize.go). Operations that know
// the old size are waited for first; then nobody can use, fill or flush what lies
// behind the end, and the sub-block that the end cuts, until the store below has
// changed. What was cached behind the end is gone then, and zeroes follow the end
// in its sub-block, so that nothing of it comes back when the volume grows.
//
// # What outlives the process
//
// With a segment (see package segment) blocks, records, the journal of what is
// dirty and a table of the volumes lie in a file in shared memory. The next
// process takes them over, after an orderly end, a crash, kill -9 or an upgrade:
// what was acknowledged is there, and hits need no store.
//
//	areas    volumes: a row for each volume, from its identity to the dense number
//	         that partitions use, with the size and the stamp of its store;
//	         intents: overwrites of dirty data that are under way (package blocks);
//	         index.N and data.N: records and blocks of node N's partitions
//	dirty    the journal decides (cache.Attach); the flusher goes on with it. What
//	         was being overwritten is completed first: a logical block is the old
//	         one or the new one
//	clean    stays warm if the store's stamp says that nobody else has written to
//	         it. The stamp is noted at an orderly end, and while the volume is open
//	         whenever nothing of it is under way (package volumes); package evidence
//	         decides. Doubt begins cold; a store that somebody else has changed is
//	         refused while there are dirty data
//	volumes  that are not wrapped any more are forgotten by Settle, but for those
//	         with dirty data, which wait as orphans. A store that has become too
//	         short for its dirty data is refused. Dirty data of a volume that does
//	         not write back any more are written before it is served
//	changed  settings: a segment in which nothing is dirty is made anew, another
//	         is refused
//	late I/O a kill does not end what the kernel reads into blocks and writes from
//	         them. Rings keep the segment locked until it has (blocks.Memory.Fence)
//
// Shared memory does not survive the machine: what has to survive a power cut is
// written with FUA or flushed.
//
// # Where data are copied
//
// Data are copied between blocks and the buffers of operations by
// blocks.Partition alone: Put is the one way to change what may be dirty. A read that
// is a hit need not be copied: Lend pins the block, and the transport sends from it.
//
// # Files
//
// Each line uses what stands above it, and nothing below.
//
//	budget, room, kick     dirty bytes are bounded; writes wait; the flusher is told
//	tuning, station,       the event threads; a request that a thread of another
//	forward                node serves
//	sizing, promotions     state that a volume's lanes share; shared has all of it
//	lower, fill, bounce,   what a lane does with the store below: reads into blocks,
//	ahead, sweep           around them, ahead of a reader; writes what is dirty
//	lane, transfer         the way of an operation, with a file for each kind
//	flusher                background writing through a lane of its own
//	volume, cache          opening, changing and closing, with all that is not I/O;
//	                       open, rehearse and serve are for the daemon alone
package tier
