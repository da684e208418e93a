package control

import "context"

// LatencyPath is the path of Latencies.
const LatencyPath = "/v1/latency"

// Latencies is how long commands that use the medium take, from when the server has
// noticed them to when it has answered them: waits for tokens, for memory and for the
// initiator's data are in it, the network is not.
type Latencies struct {
	Interval   float64            `json:"interval_seconds" doc:"Length of the last whole interval, which recent speaks of; 0: none has ended yet. One lasts 10 seconds."`
	Volumes    []VolumeLatency    `json:"volumes" nullable:"false" doc:"All volumes that were used, by name."`
	Initiators []InitiatorLatency `json:"initiators" nullable:"false" doc:"The 1,024 initiators that were active last, by name."`
	Uses       []UseLatency       `json:"uses" nullable:"false" doc:"What each initiator did with each volume in the last interval."`
	Replaced   uint64             `json:"replaced" metric:"latency_replaced_total" doc:"Times that an initiator's place in these statistics went to another, because there are too many."`
}

// VolumeLatency is of the commands of all initiators to a volume.
type VolumeLatency struct {
	Volume string              `json:"volume" doc:"Its name."`
	Total  []OperationLatency  `json:"total" nullable:"false" doc:"Since the volume was used first."`
	Recent []OperationQuantile `json:"recent" nullable:"false" doc:"In the last interval; only operations that there were."`
}

// InitiatorLatency is of the commands of an initiator to all volumes.
type InitiatorLatency struct {
	Initiator string              `json:"initiator" doc:"iSCSI name of the initiator."`
	User      string              `json:"user,omitempty" doc:"Auth group and CHAP user who has proven to use the name, if it is not the user's own."`
	Total     []OperationTotal    `json:"total" nullable:"false" doc:"Since the initiator was seen first."`
	Recent    []OperationQuantile `json:"recent" nullable:"false" doc:"In the last interval; only operations that there were."`
}

// UseLatency is of the commands of an initiator to a volume.
type UseLatency struct {
	Volume    string              `json:"volume" doc:"Name of the volume."`
	Initiator string              `json:"initiator" doc:"iSCSI name of the initiator; (others): all that are not told apart, because there are too many."`
	User      string              `json:"user,omitempty" doc:"As of an initiator."`
	Recent    []OperationQuantile `json:"recent" nullable:"false" doc:"In the last interval; only operations that there were."`
}

// OperationLatency is a distribution.
type OperationLatency struct {
	Operation string  `json:"operation" enum:"read,write,other" doc:"By the data of the commands: the initiator gets some, sends some, or neither, as with SYNCHRONIZE CACHE."`
	Latency   Latency `json:"latency" doc:"How long they took."`
}

// OperationQuantile is one without its buckets.
type OperationQuantile struct {
	Operation string  `json:"operation" enum:"read,write,other" doc:"As of a volume."`
	Count     uint64  `json:"count" doc:"Commands."`
	Mean      float64 `json:"mean_seconds" doc:"Their mean time."`
	P50       float64 `json:"p50_seconds" doc:"Half of them took at most this."`
	P90       float64 `json:"p90_seconds" doc:"90 % of them."`
	P99       float64 `json:"p99_seconds" doc:"99 % of them."`
	P999      float64 `json:"p999_seconds" doc:"99.9 % of them."`
	Max       float64 `json:"max_seconds" doc:"The longest of them."`
}

// OperationTotal is a number of commands and their times.
type OperationTotal struct {
	Operation string  `json:"operation" enum:"read,write,other" doc:"As of a volume."`
	Count     uint64  `json:"count" doc:"Commands."`
	Sum       float64 `json:"sum_seconds" doc:"All their times together."`
}

// Others is in place of the name of initiators that are not told apart.
const Others = "(others)"

// Latencies asks how long commands take.
func (c *Client) Latencies(ctx context.Context) (Latencies, error) {
	var l Latencies
	err := c.Get(ctx, LatencyPath, &l)
	return l, err
}
