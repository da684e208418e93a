package scheduler

// What event threads and the coordinator tell each other. Messages are plain
// data: whoever gets one owns it, and its slices are not used again by the
// sender until it comes back.

// EntityReport is one entity's use of one device on one event thread. Counts are
// totals since it appeared there, so that a lost or late report does no harm.
type EntityReport struct {
	Entity      string // Entity.Key
	Number      int64  // of its client there: another one starts its counts anew; ascending
	Rule        int    // number of its rule, -1 none
	Level       Level
	Root        bool  // no entity around it has a reservation
	Backlogged  bool  // something waited all the time since the last report
	Ebbing      bool  // of a node: nothing comes any more, and what waits is all that it wants
	Share       int64 // of a node: its part of the limits, millionths
	Reservation int64 // tokens/s
	Limit       int64 // tokens/s; Unlimited is none
	Residual    int64 // ξ
	Yielded     int64 // total
	Offered     int64 // total
	Served      int64 // total
	Hits        int64 // total of Served that needed no device
	Queued      int64 // waiting now
}

// ServerReport is one device as an event thread uses it.
type ServerReport struct {
	Device     *Device
	Number     int64 // of the server: another one starts its count anew
	Backlogged bool  // commands waited for the device since the last report
	Throttled  int64 // ns since the last report in which the device had room and all that waited was throttled by limits
	Done       int64 // total of tokens that it has served, also for entities that are gone
	Residual   int64 // of a node: ξ of all entities
	Threads    int   // of a node, that use the device
	Capacity   int64 // of the whole device as a node knows it, tokens per period; 0: it does not
	Entities   []EntityReport
}

// GateReport is what an event thread tells the coordinator.
type GateReport struct {
	Thread  int
	Done    int64 // total of tokens of commands that have ended there
	Servers []ServerReport
}

// next returns room for one more server, with the memory that was used before.
func (r *GateReport) next() *ServerReport {
	n := len(r.Servers)
	if n == cap(r.Servers) {
		r.Servers = append(r.Servers, ServerReport{})
	}
	r.Servers = r.Servers[:n+1]
	r.Servers[n].Entities = r.Servers[n].Entities[:0]
	return &r.Servers[n]
}

// EntityGrant is what an entity may use of a device on one event thread from now
// on.
type EntityGrant struct {
	Entity   string
	Number   int64 // of its client there
	Reserved int64 // R-tokens, to last until the period's end
}

// EntityShare is an event thread's part of an entity's limits.
type EntityShare struct {
	Entity string
	Share  int64 // millionths
}

// ServerGrant is what an event thread may use of a device.
type ServerGrant struct {
	Device   *Device
	Capacity int64         // of the whole device, tokens per period; 0: not known
	Window   int64         // the part of the configured window that may be used, millionths; 0: all
	Entities []EntityGrant // in order of Number
}

// GateGrant is what the coordinator tells an event thread. What it does not
// name stays as it is.
type GateGrant struct {
	Thread  int
	End     int64 // of the period
	Period  bool  // a new period starts
	Shares  []EntityShare
	Servers []ServerGrant
}

// clear keeps the memory.
func (g *GateGrant) clear(thread int, end int64, period bool) {
	g.Thread, g.End, g.Period, g.Shares, g.Servers = thread, end, period, g.Shares[:0], g.Servers[:0]
}

// Whole is the share of a limit on the only thread.
const Whole = whole

const whole = 1_000_000
