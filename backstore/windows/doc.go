// Package windows makes stores with predictable read latency of two others.
//
// A Mirror keeps the same data on two members. At any time one of them, the leader, takes
// the writes, and the other one, which takes none, serves the reads. What the leader has
// got more is held in memory for the other: reads find it there (read.go). When the
// window ends the writes wait, the other member gets what is held for it, the map says that
// it leads from now on, and the roles are exchanged (exchange.go). scheduler/plm decides
// when.
//
// The map (map.go) is a small file with a leader and a bit for each region that the members
// may differ in. A region's bit is stable before the first write to it, and it falls only
// when both members have been flushed. Whatever the server and the machine lose, the
// leader has all that was acknowledged, and what was flushed is stable there: a start copies
// the regions in question from the leader to the other one (resync.go). A member that fails
// is dropped (lost.go); meanwhile the bits gather what it lacks. Data that only a missing
// member has are never replaced by older ones: the store then refuses to open.
//
// An Excess puts a fast device before a slow one for the writes that exceed what a window
// of the slow one takes. They are appended to a log there (log.go), whose records have
// checksums, so that its contents are the map: a start reads them again (recover.go). What
// the log has goes before what the slow device has, until it was written back in the order
// of its place, both devices are flushed and the log's segment has a new generation
// (writeback.go).
//
// What changes data runs on goroutines that block, with a lane of their own to the stores
// below. A read that needs nothing besides one store goes there on its event thread.
package windows
