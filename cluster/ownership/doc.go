// Package ownership decides which node of a cluster owns a volume: a pure state machine of
// each node for each volume, without clock, I/O and goroutines. Package node drives it.
//
// # Who is right
//
// The owner's record (Record) in the cluster's state says who should own the volume. It
// changes by compare and swap, and each new owner has a higher epoch. What may be written
// is decided by Ceph: an owner has the image's exclusive lock by an instance whose address
// is in the record, and nobody opens the image before all instances of earlier epochs are
// closed or fenced. An owner that is superseded without hearing of it therefore fails with
// its next operation.
//
// # Cached reads
//
// They ask no Ceph, and need a lease. The record of a node (Node) is stored with the
// node's lease, and ends with it. An owner may serve cached reads until the lease's local
// deadline, if its view of the state is not older than its node's record. A claim of a
// volume with a cache demands that this record is gone, in the same transaction that
// changes the owner. A lease that lapses stops nothing: reads go to Ceph.
//
// # States
//
// The record and what the node itself has done say everything; rules.go has what follows
// from it as a table. Whatever is lost on the way, an answer, an event or the process,
// the next step begins with what is known.
package ownership
