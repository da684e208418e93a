package control

// Explanation is what the token scheduler does for initiators.
type Explanation struct {
	Capacity Capacity   `json:"capacity" doc:"What the backing devices can do."`
	Rules    int        `json:"rules" doc:"Rules in force."`
	Flows    []Flow     `json:"flows" nullable:"false" doc:"What each initiator does with each logical unit, by name."`
	Promises []Promised `json:"promises" nullable:"false" doc:"How reservations were kept, by name of those that have them; of a node of a cluster, what it has of them."`
	Lapsed   string     `json:"lapsed,omitempty" doc:"What holds while nothing is heard of the node that keeps the promises over all nodes of the cluster."`

	Connections []ClassedConnection `json:"connections" nullable:"false" doc:"Connections whose class the network knows (qos.network), by initiator, target and address."`
}

// ClassedConnection is what its class means for a connection on the network.
type ClassedConnection struct {
	Initiator  string `json:"initiator" doc:"iSCSI name of the initiator."`
	Target     string `json:"target" doc:"iSCSI name of the target."`
	Remote     string `json:"remote" doc:"Address of the initiator."`
	Class      string `json:"class" enum:"urgent,high,medium,low" doc:"The first of the classes that the rules give its LUNs."`
	DSCP       int    `json:"dscp" doc:"Code point that it is sent with; 0: the system's."`
	Congestion string `json:"congestion_control,omitempty" doc:"The kernel's, of the connection."`
	// GovernedBy names what congestion is seen by.
	GovernedBy string  `json:"governed_by" enum:"none,marks,delay" doc:"By what its congestion window, or its rate, learns of congestion: marks of the network (ECN), or round trips that are longer than the shortest; none: it is not governed."`
	Device     string  `json:"device,omitempty" doc:"Network device."`
	Window     int64   `json:"window_bytes,omitempty" doc:"What may be under way to the initiator."`
	Alpha      float64 `json:"alpha,omitempty" doc:"Smoothed share of what was marked, 0 to 1."`
	Quality    float64 `json:"quality,omitempty" doc:"The target divided by the rate: below 1 the connection makes way."`
	Rate       int64   `json:"rate_bytes_per_second,omitempty" doc:"How fast data reached the initiator while they were sent, smoothed. Pauses do not count: of who asks for little it is far above what it gets (read_bytes of /v1/overview)."`
	Share      int64   `json:"target_bytes_per_second,omitempty" doc:"What its class gives it of the bottleneck."`
	Bottleneck int64   `json:"bottleneck_bytes_per_second,omitempty" doc:"What the bottleneck behind the device is taken to carry."`
	Asked      int64   `json:"write_window_bytes,omitempty" doc:"What writes may be asked for at once."`
	Pace       int64   `json:"pace_bytes_per_second,omitempty" doc:"How fast data may be sent, over iSER, where a rate and not a window bounds that."`
	WritePace  int64   `json:"write_pace_bytes_per_second,omitempty" doc:"How fast the data of writes may be fetched, over iSER."`
}

// Flow is an initiator's use of a logical unit, over all its sessions that are
// open and over all event threads. Counters begin at zero with the first of
// these sessions. Commands that never wait, such as INQUIRY, are not counted.
type Flow struct {
	Initiator     string   `json:"initiator" doc:"iSCSI name of the initiator."`
	Target        string   `json:"target" doc:"iSCSI name of the target."`
	LUN           uint64   `json:"lun" doc:"Logical unit number."`
	Open          bool     `json:"open" doc:"Whether there is a session; else the rules are those that it would have."`
	Threads       int      `json:"threads" doc:"Event threads that it is on now."`
	Offered       int64    `json:"offered" metric:"offered_commands_total" doc:"Commands of an initiator to a logical unit that came to the scheduler."`
	Served        int64    `json:"served" metric:"served_commands_total" doc:"Commands of an initiator to a logical unit that have ended."`
	OfferedTokens int64    `json:"offered_tokens" metric:"offered_tokens_total" doc:"What the commands cost that came."`
	ServedTokens  int64    `json:"served_tokens" metric:"served_tokens_total" doc:"What the commands cost that have ended."`
	ServedBytes   int64    `json:"served_bytes" metric:"served_bytes_total" doc:"Data of the commands that have ended."`
	Reserved      int64    `json:"reserved" doc:"Commands that went by a reservation token."`
	Normal        int64    `json:"normal" doc:"Commands that took a normal token."`
	Opportunistic int64    `json:"opportunistic" doc:"Commands that went without a token, because there was room (soft pool)."`
	Hits          int64    `json:"hits" metric:"cache_hits_total" doc:"Commands that the cache served."`
	Cancelled     int64    `json:"cancelled" metric:"cancelled_commands_total" doc:"Commands that were aborted while they waited."`
	Named         int64    `json:"named_classes" metric:"named_class_commands_total" doc:"Commands that named another class by their GROUP NUMBER."`
	Waiting       int      `json:"waiting" metric:"waiting_commands" doc:"Commands that wait for their turn."`
	Rules         []Effect `json:"rules" nullable:"false" doc:"Rules that apply, from the outside in."`
	Queue         Latency  `json:"queue" doc:"From arrival to dispatch."`
	Service       Latency  `json:"service" doc:"From dispatch to the end."`
}

// Effect is what a rule does to a flow.
type Effect struct {
	Rule          string  `json:"rule" doc:"Name of the rule."`
	Level         string  `json:"level" enum:"group,initiator,nexus" doc:"What it is about as a whole: a group, an initiator, or an initiator's use of a logical unit (nexus)."`
	Reservation   Rate    `json:"reservation,omitzero" doc:"What it promises."`
	Limit         Rate    `json:"limit,omitzero" doc:"What it permits."`
	Tokens        int64   `json:"reserved_tokens" doc:"Reservation tokens that are left in this period."`
	HeldIOPS      float64 `json:"held_by_iops_seconds" doc:"Time in which commands waited for its limit of commands, since the rules were changed last."`
	HeldBandwidth float64 `json:"held_by_bandwidth_seconds" doc:"The same for its limit of bytes."`
}

// Promised is how a reservation was kept.
type Promised struct {
	Rule        string   `json:"rule" doc:"Name of the rule."`
	Level       string   `json:"level" enum:"group,initiator,nexus" doc:"As in a flow's rules."`
	Name        string   `json:"name" doc:"Of the group, or the initiator, with target and LUN if the rule is about these."`
	Reservation int64    `json:"reservation_tokens" metric:"reservation_tokens_per_second" doc:"What is reserved for a group, an initiator, or an initiator's use of a logical unit (level nexus)."`
	Met         int64    `json:"met" metric:"reservation_periods_met_total" doc:"Periods (of one second) in which the reservation was served in full, or as far as it was asked for."`
	Missed      int64    `json:"missed" metric:"reservation_periods_missed_total" doc:"Periods in which the reservation was not served, though it was asked for."`
	Unused      int64    `json:"unused" metric:"reservation_unused_periods" doc:"The last periods in a row in which less was asked for than is reserved: if they are many, others could have that."`
	Periods     []Period `json:"periods" nullable:"false" doc:"The last periods, the newest last."`
}

// Period is what somebody got in one period of the scheduler, which is a
// second, in tokens.
type Period struct {
	Reservation int64 `json:"reservation" doc:"What was promised."`
	Offered     int64 `json:"offered" doc:"What was asked for."`
	Served      int64 `json:"served" doc:"What was served."`
	Yielded     int64 `json:"yielded" doc:"Part of the reservation that was given back unused."`
	Met         bool  `json:"met" doc:"Whether the promise was kept."`
}

// Latency is a distribution of times. Quantiles are interpolated between powers
// of two, and never more than the longest time.
type Latency struct {
	Count   int64    `json:"count" doc:"Commands."`
	Sum     float64  `json:"sum_seconds" doc:"All their times together."`
	P50     float64  `json:"p50_seconds" doc:"Half of them took at most this."`
	P90     float64  `json:"p90_seconds" doc:"90 % of them."`
	P99     float64  `json:"p99_seconds" doc:"99 % of them."`
	P999    float64  `json:"p999_seconds" doc:"99.9 % of them."`
	Max     float64  `json:"max_seconds" doc:"The longest of them."`
	Buckets []Bucket `json:"buckets" nullable:"false" doc:"How many took less than a time, for some times."`
}

// Bucket is how many commands took less than a time.
type Bucket struct {
	Below float64 `json:"below_seconds" doc:"The time."`
	Count int64   `json:"count" doc:"Commands that took less."`
}
