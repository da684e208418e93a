// Package node is what a node does in its cluster: it keeps its leases, watches the state,
// and has the machines of package ownership decide about its volumes.
//
// One goroutine decides; nothing that it calls blocks. What machines want done and what
// takes time runs on a goroutine of its own for each volume, so that a volume whose Ceph
// does not answer delays no other. Two more goroutines keep a lease each: that of the
// node's record, by which cached reads live, and a shorter one of its pulse.
package node
