// Package volumes is the cache's table of volumes: which number a volume has in the
// partitions, and what is known of its store. It may lie in a segment, and is then
// found by the next process, whichever instruction this one ends at.
//
//	table.go    the rows: words in memory that others may attach
//	judge.go    what a row says of a store: whether it is the one that is known
//	witness.go  notes in a row what the store of an open volume looks like while
//	            nobody writes to it
package volumes
