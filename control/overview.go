package control

import (
	"context"
	"time"
)

// OverviewPath is where an Overview is asked for.
const OverviewPath = "/v1/overview"

// Overview is what there is to see of a server, as rates and shares of the time since the
// Overview before, which is about a second. It is made once for all who ask at the time.
// Its lists have the busiest, and LeftOut says how many more there are.
type Overview struct {
	At       time.Time `json:"at" doc:"When it was made."`
	Interval float64   `json:"interval_seconds" doc:"Time that rates and shares are about."`
	Version  string    `json:"version" doc:"Version of tgtd."`
	Uptime   float64   `json:"uptime_seconds" doc:"Seconds since the server started."`
	State    string    `json:"state" enum:"ok,degraded,failed" doc:"How the server is."`
	Line     string    `json:"line" doc:"The same in a line, as lunar status begins."`
	Answers  []Answer  `json:"answers" nullable:"false" doc:"What is wrong, and what holds initiators back, in sentences: the worst first."`

	Total      Rates           `json:"total" doc:"Commands and data of all sessions."`
	Initiators []SeenInitiator `json:"initiators" nullable:"false" doc:"Initiators with sessions, the busiest first."`
	Uses       []SeenUse       `json:"uses" nullable:"false" doc:"What initiators do with volumes now, the busiest first."`
	Volumes    []SeenVolume    `json:"volumes" nullable:"false" doc:"Volumes, the busiest first."`
	Promises   []SeenPromise   `json:"promises" nullable:"false" doc:"Reservations of who has sessions, the missed ones first."`
	Threads    []SeenThread    `json:"threads" nullable:"false" doc:"Event threads, in order."`
	Devices    []SeenDevice    `json:"devices" nullable:"false" doc:"Backing devices of volumes, by name."`
	Cache      *SeenCache      `json:"cache,omitempty" doc:"The block cache; absent if there is none."`
	Rules      []SeenRule      `json:"rules" nullable:"false" doc:"QoS rules in force, in words, by name."`
	Cluster    *Cluster        `json:"cluster,omitempty" doc:"The cluster that the server is a node of, as /v1/cluster tells it, with volumes in flux first; absent if it is of none."`
	HeatBounds []float64       `json:"heat_bounds_seconds" nullable:"false" doc:"Upper bounds of the times that heat of volumes counts; the last count is of longer ones."`

	Drift    []Drift  `json:"drift" nullable:"false" doc:"Differences of the server from its configuration file."`
	Warnings []string `json:"warnings" nullable:"false" doc:"What stands and ought to be changed."`
	Events   []Event  `json:"events" nullable:"false" doc:"What has happened last, the newest last."`
	LeftOut  LeftOut  `json:"left_out" doc:"What the lists do not have."`
}

// LeftOut is how many of the less busy there are besides those that are listed.
type LeftOut struct {
	Initiators int `json:"initiators" doc:"Initiators."`
	Uses       int `json:"uses" doc:"Uses of volumes by initiators."`
	Volumes    int `json:"volumes" doc:"Volumes."`
	Promises   int `json:"promises" doc:"Reservations."`
	Owned      int `json:"cluster_volumes" doc:"Volumes of the cluster."`
}

// Answer is a finding with what would help.
type Answer struct {
	Severity   string   `json:"severity" enum:"failed,differs,missed,full,warning,note,ok" doc:"failed: data are not available, or in danger; differs: the next start undoes something; missed: a promise is not kept; full: something holds initiators back; warning: the server warns of something; note: nothing in the server holds them back; ok: there is nothing to say."`
	Kind       string   `json:"kind" enum:"dirty,health,drift,warning,promise,limit,device,thread,cache,memory,network,window,depth,cluster,ok" doc:"What it is about."`
	About      string   `json:"about,omitempty" doc:"Name of that: a volume, rule, device, event thread or node."`
	Initiators []string `json:"initiators" nullable:"false" doc:"Initiators that it hits."`
	What       string   `json:"what" doc:"What was found, in a sentence."`
	Help       string   `json:"help,omitempty" doc:"What would help, in sentences."`
}

// The severities of an Answer, the worst first. People see the first three in red.
const (
	AnswerFailed  = "failed"
	AnswerDiffers = "differs"
	AnswerMissed  = "missed"
	AnswerFull    = "full"
	AnswerWarning = "warning"
	AnswerNote    = "note"
	AnswerOK      = "ok"
)

// Rates are per second.
type Rates struct {
	IOPS         float64 `json:"iops" doc:"Commands that ended."`
	Reads        float64 `json:"reads" doc:"Of them, those that send data to the initiator."`
	Writes       float64 `json:"writes" doc:"Of them, those that take data from the initiator."`
	ReadBytes    float64 `json:"read_bytes" doc:"Data sent to initiators."`
	WrittenBytes float64 `json:"written_bytes" doc:"Data taken from initiators."`
}

// SeenInitiator is what an initiator asks for and gets, in all its sessions.
type SeenInitiator struct {
	Initiator string   `json:"initiator" doc:"iSCSI name."`
	Sessions  int      `json:"sessions" doc:"Sessions that it has."`
	Addresses []string `json:"addresses" nullable:"false" doc:"Where they come from."`
	Threads   []string `json:"threads" nullable:"false" doc:"Event threads that serve them."`
	Volumes   []string `json:"volumes" nullable:"false" doc:"Volumes that it may use."`
	Rates
	Recent    []OperationQuantile `json:"recent" nullable:"false" doc:"How long its commands took in the last whole interval of /v1/latency."`
	UnderWay  float64             `json:"under_way" doc:"Commands that were under way in the server on average: their rate times their mean time."`
	InFlight  int                 `json:"in_flight" doc:"Commands that are under way now."`
	Window    int                 `json:"window" doc:"Commands that it may have under way."`
	Bound     string              `json:"bound" enum:"idle,depth,window,limit,thread,device,cache,memory,network" doc:"What its rate ends at: the fullest of what its commands need; depth: it asks for no more."`
	Promise   string              `json:"promise" enum:"none,kept,missed" doc:"Whether its reservations were kept in the last second."`
	Reserved  int64               `json:"reserved_tokens" doc:"What is promised to it alone, in tokens per second; 0: nothing."`
	Asked     float64             `json:"asked_tokens" doc:"What it asked for, in tokens per second; 0 without rules."`
	Received  float64             `json:"received_tokens" doc:"What it got, in tokens per second; 0 without rules."`
	Limit     Rate                `json:"limit,omitzero" doc:"The lowest limits that the rules set it."`
	Throttled float64             `json:"throttled" doc:"Share of the time in which a limit held commands back, of the use that it held most."`
	HeldBy    string              `json:"held_by,omitempty" doc:"Rule whose limit that was."`
	Waiting   int                 `json:"waiting" doc:"Commands that wait for their turn now."`
	Rules     []string            `json:"rules" nullable:"false" doc:"Rules that apply to it."`
}

// SeenUse is what an initiator does with a volume.
type SeenUse struct {
	Initiator string `json:"initiator" doc:"iSCSI name."`
	Volume    string `json:"volume" doc:"Name of the volume."`
	Rates
	Recent    []OperationQuantile `json:"recent" nullable:"false" doc:"As of an initiator."`
	Throttled float64             `json:"throttled" doc:"As of an initiator."`
	Waiting   int                 `json:"waiting" doc:"Commands that wait for their turn now."`
	Rules     []string            `json:"rules" nullable:"false" doc:"Rules that apply, from the outside in."`
}

// SeenVolume is what initiators do with a volume.
type SeenVolume struct {
	Volume string   `json:"volume" doc:"Its name."`
	State  string   `json:"state" enum:"ok,degraded,failed" doc:"Its health."`
	Wrong  []string `json:"wrong" nullable:"false" doc:"What is wrong with it, in words."`
	Device string   `json:"device,omitempty" doc:"The device that it is on."`
	Size   int64    `json:"size_bytes" doc:"Its capacity."`
	Frozen bool     `json:"frozen" doc:"Whether its commands are held for a copy."`
	Rates
	Recent    []OperationQuantile `json:"recent" nullable:"false" doc:"As of an initiator."`
	HitRatio  *float64            `json:"hit_ratio,omitempty" doc:"Hits in hits and misses; absent: nothing was looked for in the cache."`
	Dirty     int64               `json:"dirty_bytes" doc:"Data that only the cache has."`
	Failing   bool                `json:"failing" doc:"Whether these cannot be written to its file or device."`
	Snapshots *VolumeSnapshots    `json:"snapshots,omitempty" doc:"Its snapshots and their schedule; absent: it has neither."`
	Heat      []uint64            `json:"heat" nullable:"false" doc:"Reads and writes that ended, by how long they took: a count for each of heat_bounds_seconds, and one for longer ones."`
}

// SeenPromise is a reservation and what came of it, in tokens per second.
type SeenPromise struct {
	Rule        string   `json:"rule" doc:"Name of the rule."`
	Level       string   `json:"level" enum:"group,initiator,nexus" doc:"Whom it is promised to: a group, an initiator, or an initiator's use of a logical unit."`
	Name        string   `json:"name" doc:"Of the group or the initiator, with target and LUN if the rule is about these."`
	Initiators  []string `json:"initiators" nullable:"false" doc:"Initiators with sessions that it is about."`
	Reservation int64    `json:"reservation_tokens" doc:"What is promised."`
	Asked       int64    `json:"asked_tokens" doc:"What was asked for in the last whole second."`
	Served      int64    `json:"served_tokens" doc:"What was served in it."`
	State       string   `json:"state" enum:"kept,missed,unused" doc:"unused: less was asked for than is promised."`
	MissedOf60  int      `json:"missed_of_60" doc:"Seconds of the last 60 in which the promise was missed."`
	Unused      int64    `json:"unused_periods" doc:"The last seconds in a row in which less was asked for."`
	History     []int64  `json:"history" nullable:"false" doc:"What was served in the last seconds, up to 60, the newest last."`
}

// SeenThread is an event thread.
type SeenThread struct {
	Name        string  `json:"name" doc:"Name of the thread."`
	CPU         int     `json:"cpu" doc:"CPU that it is pinned to; -1: none."`
	Node        int     `json:"node" doc:"NUMA node; -1: unknown."`
	Connections int     `json:"connections" doc:"Connections that it serves."`
	Busy        float64 `json:"busy" doc:"Share of the time in which it had something to do."`
	Waited      float64 `json:"waited" doc:"Share of the time in which it had something to do and no CPU: other processes, or other machines of the same host, had it."`
	Buffers     float64 `json:"buffers" doc:"Share of its data buffers that is handed out."`
	Passes      float64 `json:"passes" doc:"Turns of its loop per second."`
	Tokens      int64   `json:"tokens_per_second" doc:"What it can do; 0: not known."`
	Served      int64   `json:"served_tokens_per_second" doc:"What it served in the last second, while there are rules."`
}

// SeenDevice is a backing device.
type SeenDevice struct {
	Name     string   `json:"name" doc:"Its name, as in /v1/qos."`
	Volumes  []string `json:"volumes" nullable:"false" doc:"Volumes on it."`
	Tokens   int64    `json:"tokens_per_second" doc:"What it can do; 0: not known."`
	Reserved int64    `json:"reserved_tokens_per_second" doc:"What is reserved of it in this second."`
	Full     bool     `json:"full" doc:"Whether commands waited for it in this second or the last; known while there are rules."`
	Rates
}

// SeenCache is the block cache.
type SeenCache struct {
	Size       int64      `json:"size_bytes" doc:"Block data that it can hold."`
	Used       int64      `json:"used_bytes" doc:"Blocks that hold data."`
	Dirty      int64      `json:"dirty_bytes" doc:"Data that the backing stores do not have yet."`
	DirtyLimit int64      `json:"dirty_limit_bytes" doc:"Dirty data from which writes wait."`
	HitRatio   *float64   `json:"hit_ratio,omitempty" doc:"Hits in hits and misses; absent: nothing was looked for."`
	Hits       float64    `json:"hits" doc:"Hits per second."`
	Misses     float64    `json:"misses" doc:"Misses per second."`
	Flushed    float64    `json:"flushed_bytes" doc:"Dirty data written per second."`
	Evictions  float64    `json:"evictions" doc:"Blocks per second that made room for others."`
	Throttled  float64    `json:"throttled_writes" doc:"Writes per second that had to wait for the dirty limit."`
	Waiting    int64      `json:"waiting_writes" doc:"Writes that wait for it now."`
	Nodes      []SeenNode `json:"nodes" nullable:"false" doc:"Its parts, and what goes between NUMA nodes."`
}

// SeenNode is the cache's part of a NUMA node, and its traffic.
type SeenNode struct {
	Node      int      `json:"node" doc:"Number of the node."`
	Size      int64    `json:"size_bytes" doc:"Block data that its partitions can hold."`
	Used      int64    `json:"used_bytes" doc:"Blocks that hold data."`
	Dirty     int64    `json:"dirty_bytes" doc:"Data that the backing stores do not have yet."`
	HitRatio  *float64 `json:"hit_ratio,omitempty" doc:"As of the cache."`
	Local     float64  `json:"local_bytes" doc:"Data per second of requests served on the node that has most of them."`
	Remote    float64  `json:"remote_bytes" doc:"Data per second of requests served here, though another node has most of them."`
	Forwarded float64  `json:"forwarded_bytes" doc:"Data per second of requests that were handed to the node that has most of them."`
}

// SeenRule is a rule in words.
type SeenRule struct {
	Name string `json:"name" doc:"Name of the rule."`
	Text string `json:"text" doc:"What it says, in sentences."`
}

// Overview asks what there is to see. The first answer after a pause takes a second.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	err := c.Get(ctx, OverviewPath, &o)
	return o, err
}
