package nodes

// Periods are as long, and are divided into as many intervals, on all nodes.
const (
	period    = 1e9 // ns
	intervals = 5
	// Interval is the time between two grants, ns.
	Interval = period / intervals
	// lasts is how old a report may be, ns, that a grant follows, and for how long a node is known by
	// it.
	lasts = 2 * Interval
	// Holds is for how long a node goes on with a grant, ns, since it made the report that the grant
	// follows: while a controller is replaced, and while the node is away for a moment.
	Holds = 15 * Interval
	// forgotten is after how long a device is forgotten, ns, that no node uses: what it can do would
	// have to be learnt again.
	forgotten = 600 * period
)
