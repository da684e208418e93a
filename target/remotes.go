package target

import (
	"slices"
	"sync"

	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// RelayPeer is another server that relays commands of its sessions to this one, or that this
// one relays commands to.
type RelayPeer struct {
	Node        string
	Incarnation string       // of its process: what another one said does not hold any more
	Back        scsi.Carrier // leads to it
}

// remotes are the nexuses of sessions at other servers whose commands are relayed to this one.
type remotes struct {
	mu  sync.Mutex
	all map[remoteKey]*remoteNexus
}

type remoteKey struct {
	node   string
	number uint64 // by which the node speaks of it
}

// find returns a nexus; nil: it is not known.
func (r *remotes) find(from RelayPeer, number uint64) *remoteNexus {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.all[remoteKey{from.Node, number}]
	if n == nil || n.peer.Incarnation != from.Incarnation {
		return nil
	}
	return n
}

// of returns those for which match holds.
func (r *remotes) of(match func(*remoteNexus) bool) (all []*remoteNexus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.all {
		if match(n) {
			all = append(all, n)
		}
	}
	return all
}

// on are those of logical units.
func (r *remotes) on(units []*scsi.LogicalUnit) []*remoteNexus {
	return r.of(func(n *remoteNexus) bool { return slices.Contains(units, n.nexus.LU) })
}

// add makes a nexus known, unless it is, and opens it on its thread: whatever comes there from those
// who find it comes behind.
func (r *remotes) add(n *remoteNexus) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[remoteKey]*remoteNexus{}
	}
	if r.all[n.key] != nil {
		return false
	}
	r.all[n.key] = n
	n.thread.loop.Post(evloop.Func(n.open))
	return true
}
