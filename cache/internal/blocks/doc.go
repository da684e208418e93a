// Package blocks is the memory of a cache: its partitions, the data of their blocks,
// and in a segment what the next process needs of both. It does no I/O on stores.
//
//	partition.go  a partition with the data of its blocks, sum.go their checksums
//	intent.go     overwrites of dirty data that are whole after a kill, put.go all others
//	config.go     what is asked for, layout.go the areas of a segment for it
//	journal.go    what a partition writes in the segment's journal
//	remains.go    what an earlier process has left in a segment
//	memory.go     all partitions; open.go opens them, in anonymous memory, in arenas or
//	              in a segment
//	intents.go    which event thread has which intent
//	scrub.go      looks for damage
//	fence.go      the segment stays locked while the kernel uses its blocks
//	unit.go       what all partitions have of one volume
//	tail.go       claims of all that lies behind a byte
//	wake.go       who has waited in a partition goes on
package blocks
