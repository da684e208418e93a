package nodes

import "lunar/scheduler"

// Ask is what the controller asks a node for: a report.
type Ask struct {
	Term uint64 // of the controller
	Base uint64 // the node's report that it has; 0: none
}

// Report is what a node tells the controller.
type Report struct {
	Number   uint64   // of the node's reports; not 0
	Base     uint64   // the report on which it is based; 0: none, and all of it is new
	Entities []Entity // that are new or have changed, in order of Number
	Devices  []Device // all, in order of their names
}

// Entity is what a rule applies to as a whole.
type Entity struct {
	Number      int64 // the node's
	Key         string
	Level       scheduler.Level
	Reservation int64 // tokens/s
	Limit       int64 // tokens/s; pshift.Unlimited is none
	Share       int64 // of the limits, millionths, that the node had when it told of it
}

// Device is a device as a node uses it. Its counts are ServerReport's; Done is what has been
// added.
type Device struct {
	Name       string
	Shared     bool // other nodes use it, too
	Backlogged bool
	Number     int64
	Threads    int64
	Done       int64
	Capacity   int64
	Throttled  int64
	Residual   int64
	Uses       []Use // that have changed, in order of Entity
}

// Use is an entity's use of a device. Its counts are EntityReport's; totals are what has been
// added.
type Use struct {
	Entity     int64
	Gone       bool // it uses the device no more
	Backlogged bool
	Root       bool
	Ebbing     bool
	Offered    int64
	Served     int64
	Hits       int64
	Yielded    int64
	Queued     int64
}

// Grant is what the controller gives a node.
type Grant struct {
	Term   uint64
	Report uint64 // the node's report whose numbers it has
	scheduler.NodeGrant
}
