// Package protect keeps protection information (SBC-3 clause 4.22, T10-DIF)
// beside the data of any backing store: a tuple of eight bytes for each logical
// block, with a CRC of its data. Every write makes tuples, or takes those that
// the initiator sent; every read compares the data with them. So a block that
// the medium changed, put elsewhere or never wrote is reported, not returned.
//
// Tuples lie in a store of their own, inverted, so that what was never written
// there, and reads as zeroes, is the escape that SBC demands of formatted blocks:
// all ones, which are not checked.
//
// Data and tuples cannot be written in one atomic step. A log of regions that may
// disagree (regions.go) is made stable before the first write to a region; after
// a crash the tuples of these regions are made anew from the data, as bitmap mode
// of dm-integrity does it. There a block that the medium changed, in such a region and
// before the next start, is not told from one that was being written: recovery names
// and counts them all (anew.go). A stop in order leaves no such region.
//
// Data are written before tuples, and room for the tuples of a region is found before
// the first change of it: a change that is refused for lack of space leaves each block
// with its old data or its new ones and a tuple that fits (mend.go). On file systems
// whose fallocate(2) keeps no room, such as those that copy on write, the tuples of a
// change may still find none, and its blocks are reported as wrong then.
package protect
