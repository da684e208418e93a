package ownership

import (
	"time"

	"lunar/cluster"
)

// View is what a node knows of all nodes, from one moment of the state. The machines of a
// node share it and do not change it.
type View struct {
	Nodes map[string]Peer // those whose record is there
	// Current: the node's own record is there, with the lease that it has now, and
	// nothing in the view is older than that.
	Current bool
	// Until is the deadline of that lease.
	Until time.Time
	// Linked has the other nodes that are heard without the state, by name.
	Linked map[string]Linked
	// Forgotten is about records that were removed.
	Forgotten Forgotten
	forgotten cluster.Revision // of its key
}

// unforgotten demands that no more records were removed since.
func (v *View) unforgotten(keys cluster.Keys) cluster.Condition {
	return cluster.Condition{Key: keys.Forgotten(), Modified: v.forgotten}
}

// Linked is what a node says of itself that is heard without the state. No data depend on its
// being right: it has an owner keep what it may lose.
type Linked struct {
	Incarnation string
	Until       time.Time // it counts until then, unless the node is heard again
	Without     []string  // volumes that it owns by its record, and does not serve
	Stores      []string  // those of its volumes that answer it (Machine.Silent)
	Silent      []string  // those that do not; of a store in neither list nothing is known
}

// Peer is a living node.
type Peer struct {
	Incarnation string
	Modified    cluster.Revision // of its record
	Since       time.Time        // when this incarnation was seen first
	Heard       bool             // its pulse is there, which ends before its record does
	Unheard     time.Time        // since when it is not; zero: it is heard
	Draining    bool             // it is to have no volumes
	// Unable has the volumes that it could not open, by its own word, and why. It claims none of
	// them, and is given none.
	Unable map[string]string
}

// Config is what a machine knows of its volume and its node.
type Config struct {
	Keys        cluster.Keys
	Volume      string
	Node        string
	Incarnation string   // of the node's process, unlike all before
	Owners      []string // nodes that may own the volume, the best first
	Cached      bool     // there is a cache in front of the volume
	// BlockSize is the volume's in bytes; 0: any. A node never owns a volume that was open with
	// another one, and does not present it as another owner's: it would be another disk.
	BlockSize int
	// Image is what the volume is in, by a name that is the same on all nodes; empty: any. The same
	// holds for it as for BlockSize.
	Image string
	// Revision is that of the cluster's configuration that the node knows the volume by; 0: it
	// knows it by its own. A volume that was made anew since it was open may be another disk.
	Revision int64
	// Failback is how long a node that is named before the owner must have lived to get the
	// volume back; 0: only a request moves it back.
	Failback time.Duration
	// Stagger is how long each candidate lets the one before it claim a volume.
	Stagger time.Duration
	// Patience is how long a free volume waits for the node that it was closed for.
	Patience time.Duration
	// Retry is the pause after something that failed.
	Retry time.Duration
	// Mute is for how long Ceph may not answer this node until a volume that it owns goes to one
	// which Ceph answers; 0: for any time. A volume does so once in six times that.
	Mute time.Duration
}

// unlike reports that the volume is another one than that of a record.
func (c *Config) unlike(r *Record) bool {
	return c.BlockSize != 0 && r.BlockSize != 0 && c.BlockSize != r.BlockSize ||
		c.Image != "" && r.Image != "" && c.Image != r.Image
}

// stale reports that the volume is another one than that of a record, and not because it was made
// anew: who has the record knew as much as this node, or more.
func (c *Config) stale(r *Record) bool { return c.unlike(r) && c.Revision <= r.Revision }

// State is what a machine is doing.
type State string

// The states.
const (
	Follower   State = "follower"   // somebody else owns the volume, or nobody can
	Suspecting State = "suspecting" // its owner seems to be dead
	Fencing    State = "fencing"    // earlier owners are being kept from writing
	Opening    State = "opening"
	Owner      State = "owner"
	Draining   State = "draining" // the volume is being closed
)

// Kind is what an Action does. Those before Serve take time, and Machine.Ended hears of
// their end; there is one of a machine at a time.
type Kind uint8

// The kinds of Action.
const (
	Nothing Kind = iota
	Connect      // get a Ceph instance for the volume, none of Instances, and tell its address
	Commit       // change the state: Conditions, Changes
	Fence        // keep Instances from writing
	Open         // open the volume for Epoch, with the lock that Instances may have
	Close        // end what is under way, drop what is cached, give the lock back
	Serve        // answer commands as the volume's owner
	Hold         // let commands wait: ownership is in flux
	Standby      // answer that Record.Node owns it
	Trust        // serve cached reads until Until, and none behind it
)

// Action is what a machine wants done.
type Action struct {
	Kind       Kind
	Epoch      uint64
	Instances  []string
	Conditions []cluster.Condition
	Changes    []cluster.Change
	Record     Record
	Until      time.Time
}

// Disk is a volume that was opened.
type Disk struct {
	Address   string // of the instance that has its lock
	Size      int64  // bytes
	BlockSize int    // bytes
}

// Outcome is how an action has ended.
type Outcome struct {
	Err      error
	Address  string           // of Connect
	Disk     Disk             // of Open
	Revision cluster.Revision // of Commit
	Late     bool             // of Open that failed: something may still be open, or will be
}

// Claimed is the instance by which an Open opens the volume.
func (a *Action) Claimed() string { return a.Record.claimed() }
