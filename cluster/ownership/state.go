package ownership

import (
	"time"

	"lunar/cluster"
)

// Machine decides for one volume on one node. Whoever drives it tells it what has changed
// (Owned, Asked, Ended, Lost, Stop) and then asks with Step what is to be done.
type Machine struct {
	config Config

	// What the state says.
	record   Record
	modified cluster.Revision // of record; 0: there is none
	known    bool             // record was read
	request  *Request
	asked    cluster.Revision // of request

	// What this node has.
	address  string // of the instance that Open will use, which nobody else is to fence; empty: none
	disk     *Disk  // what is open
	epoch    uint64 // that it was opened for
	lost     bool   // it is fenced
	fenced   uint64 // epoch whose predecessors are fenced
	failed   uint64 // epoch that could not be opened
	failing  bool   // a step to it has failed since something was
	late     bool   // what was opened or closed last may still have the lock
	leaving  bool   // what was open was closed for another node, or goes there without
	stopping bool
	opened   time.Time // when disk was
	store    string    // that the volume is in; empty: not known
	silent   time.Time // since when it does not answer; zero: it does
	refuge   string    // the node that is to have the volume instead, which it answers

	// What is under way, and what was told.
	busy    Kind
	epochOf uint64           // of what is busy
	await   cluster.Revision // of a Commit of this node that the view does not have yet; 0: there is none
	doubt   bool             // it is not known whether a Commit that changes the record of the view was done
	retry   time.Time        // nothing is begun before: a Commit has failed, or is awaited
	pause   time.Time        // no other thing is: Ceph has
	cause   cause            // why the volume has no owner
	since   time.Time        // and since when
	access  access
	until   time.Time
	state   State
	now     time.Time // of the Step that is under way
}

// cause is why a volume may be claimed.
type cause struct {
	of   cluster.Revision // of the record
	what vacancy
}

// access is how commands are answered.
type access struct {
	kind   Kind // Serve, Hold or Standby
	epoch  uint64
	record cluster.Revision
}

// mine reports whether the record names this node's process as the owner.
func (m *Machine) mine() bool {
	return m.modified != 0 && m.record.Standing != Free && m.record.Node == m.config.Node && m.record.Incarnation == m.config.Incarnation
}

// open reports whether what is open is what the record says.
func (m *Machine) open() bool {
	return m.disk != nil && !m.lost && m.mine() && m.epoch == m.record.Epoch
}
