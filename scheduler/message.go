package scheduler

// What event threads and the coordinator tell each other. Messages are plain
// data: whoever gets one owns it, and its slices are not used again by the
// sender until it comes back.

// EntityReport is one entity on one event thread. Counts are totals since the
// entity appeared there, so that a lost or late report does no harm.
type EntityReport struct {
	Entity      string // Entity.Key
	Number      int64  // of the entity on that thread: another one starts its counts anew
	Level       Level
	Rule        int   // number of its rule, -1 none
	Root        bool  // no entity around it has a reservation
	Reservation int64 // tokens/s
	Limit       int64 // tokens/s; Unlimited is none
	Residual    int64 // ξ
	Yielded     int64 // total
	Offered     int64 // total
	Served      int64 // total
	Hits        int64 // total of Served that needed no device
	Queued      int64 // waiting now
	Backlogged  bool  // something waited all the time since the last report
}

// GateReport is what an event thread tells the coordinator.
type GateReport struct {
	Thread     int
	Backlogged bool  // commands waited for the device since the last report
	Done       int64 // total of tokens that the device has served, also for entities that are gone
	Entities   []EntityReport
}

// EntityGrant is what an entity may use on one event thread from now on.
type EntityGrant struct {
	Entity   string
	Reserved int64 // R-tokens, to last until the period's end
	Share    int64 // of its limits, in millionths
}

// GateGrant is what the coordinator tells an event thread.
type GateGrant struct {
	Thread   int
	End      int64 // of the period
	Period   bool  // a new period starts
	Entities []EntityGrant
}

// whole is the share of a limit on the only thread.
const whole = 1_000_000
