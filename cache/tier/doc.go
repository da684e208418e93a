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
// media. Sync: like Through, and every write has FUA.
//
// # Dirty data
//
// A flusher for each volume with policy Back writes dirty blocks in order of
// address, neighbours merged, when there are many of them or they have been there
// for some time. Dirty bytes are bounded, for each volume and in all: a write
// that finds no room waits. What the store below refuses stays dirty and is tried
// again; meanwhile writes of that volume go through, so that the initiator
// learns of the trouble rather than waits.
//
// # Where data are copied
//
// Data are copied between blocks and the buffers of operations in copy.go alone.
// To send from cache memory instead, a read's piece would hand its pin and
// partition.bytes to the transport there, and Unpin when the data are sent;
// writes would then ask for a fresh copy of a block in use
// (cache.WriteOptions.Fresh) and copy Grant.Keep first.
package tier
