package control

// ClusterPromisesPath is where the promises over all nodes are asked for.
const ClusterPromisesPath = "/v1/qos/cluster"

// ClusterPromises is what is promised over all nodes of a cluster, as the node knows it that
// keeps these promises.
type ClusterPromises struct {
	Controller string           `json:"controller" doc:"The node that keeps them: the nodes elect it."`
	Term       uint64           `json:"term" doc:"Number of its election: later ones have higher numbers."`
	Nodes      []string         `json:"nodes" nullable:"false" doc:"Nodes that report to it."`
	Silent     []string         `json:"silent" nullable:"false" doc:"Nodes that live and do not report: each is taken to have its even part of all limits."`
	Devices    []Device         `json:"devices" nullable:"false" doc:"Backing devices that several nodes use, with what all nodes together can do."`
	Promises   []ClusterPromise `json:"promises" nullable:"false" doc:"Reservations and limits, by name."`
	More       int              `json:"more" doc:"Promises that are not named here."`
}

// ClusterPromise is a reservation or a limit over all nodes.
type ClusterPromise struct {
	Level       string         `json:"level" enum:"group,initiator,nexus" doc:"What it is about: a group of initiators, an initiator, or its use of a logical unit."`
	Name        string         `json:"name" doc:"Name of that."`
	Reservation int64          `json:"reservation_tokens" doc:"Reserved, tokens per second; 0: nothing."`
	Limit       int64          `json:"limit_tokens" doc:"Limit, tokens per second; 0: none."`
	Served      int64          `json:"served_tokens" doc:"Tokens that all nodes served in the last second."`
	Met         int64          `json:"periods_met" doc:"Seconds in which the reservation was kept."`
	Missed      int64          `json:"periods_missed" doc:"Seconds in which it was not."`
	Why         string         `json:"why,omitempty" doc:"Why it was missed in the last second, as far as that is known."`
	Nodes       []ClusterQuota `json:"nodes" nullable:"false" doc:"What each node has of it, where it is used."`
}

// ClusterQuota is what a node has of a promise.
type ClusterQuota struct {
	Node     string  `json:"node" doc:"Name of the node."`
	Reserved int64   `json:"reserved_tokens" doc:"Tokens that are left of the reservation in this second."`
	Limit    float64 `json:"limit_share" doc:"The part of the limit: 1 is all of it."`
	Served   int64   `json:"served_tokens" doc:"Tokens that it served in the last second."`
}
