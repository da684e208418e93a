package control

import (
	"fmt"
	"time"

	"lunar/internal/bytesize"
)

// Status is what a server tells of itself. Counters begin at zero when the
// server starts, or the session does, and never go back. Sizes are in bytes.
type Status struct {
	Server    Daemon       `json:"server" doc:"The process and its event threads."`
	Cache     *Cache       `json:"cache,omitempty" doc:"The block cache; absent if the server has none."`
	RDMA      *RDMA        `json:"rdma,omitempty" doc:"iSCSI over RDMA; absent if no portal group asks for it."`
	Volumes   []Volume     `json:"volumes" nullable:"false" doc:"All volumes, in the order of the configuration."`
	Targets   []Target     `json:"targets" nullable:"false" doc:"All target nodes, in the order of the configuration."`
	Sessions  []Session    `json:"sessions" nullable:"false" doc:"Sessions that are open, by TSIH."`
	Drift     []Drift      `json:"drift,omitempty" doc:"Differences of the server from its configuration file, as it was read last."`
	Closing   []string     `json:"closing,omitempty" doc:"Volumes that were removed and are still being closed, since their files or devices do not take what they are to."`
	Refusals  []Refusals   `json:"refusals,omitempty" doc:"What was refused or taken away, by reason."`
	Incidents *Incidents   `json:"incidents,omitempty" doc:"Errors that initiators were told, or brought about."`
	LastApply *LastApply   `json:"last_apply,omitempty" doc:"How the last try to change the configuration ended, by a file or by objects; absent if there was none."`
	Cluster   *Cluster     `json:"cluster,omitempty" doc:"The cluster that the server is a node of; absent if it is of none."`
	Moves     Moves        `json:"moves" doc:"Volumes that are sent to other servers, received, or read as a whole."`
	Warnings  []string     `json:"warnings,omitempty" doc:"What stands and ought to be changed, such as reservations beyond the capacity."`
	QoS       *Explanation `json:"qos,omitempty" doc:"What the token scheduler does for all initiators that have sessions; absent while there are no rules."`

	Latencies *Latencies `json:"-"` // for the metrics; /v1/latency tells it
}

// Incidents are errors since the start.
type Incidents struct {
	Sense         []SenseCount    `json:"sense" nullable:"false" doc:"Commands that ended with CHECK CONDITION, by sense key and additional sense code."`
	Functions     []FunctionCount `json:"functions" nullable:"false" doc:"Task management that initiators asked for."`
	Aborted       uint64          `json:"aborted" metric:"aborted_commands_total" doc:"Commands that ended without a status, because they were aborted or their connection was lost."`
	HeaderDigests uint64          `json:"header_digest_errors" metric:"header_digest_errors_total" doc:"Connections that ended because the digest of a header was wrong."`
	DataDigests   uint64          `json:"data_digest_errors" metric:"data_digest_errors_total" doc:"PDUs whose data did not have their digest."`
}

// SenseCount is how often initiators were told something.
type SenseCount struct {
	Key   string `json:"key" doc:"Sense key, in words."`
	ASC   string `json:"asc" doc:"Additional sense code and qualifier, four hexadecimal digits."`
	Count uint64 `json:"count" doc:"How often."`
}

// FunctionCount is how often initiators asked for a task management function.
type FunctionCount struct {
	Function string `json:"function" doc:"Its name."`
	Count    uint64 `json:"count" doc:"How often."`
}

// Moves are volumes that go to other servers, come from them, or are read as a whole.
type Moves struct {
	UnderWay       int    `json:"under_way" metric:"under_way" doc:"Volumes that are being sent, received or read as a whole."`
	Sent           uint64 `json:"sent" metric:"sent_total" doc:"Volumes that were sent to the end."`
	Received       uint64 `json:"received" metric:"received_total" doc:"Volumes that were received to the end."`
	SendsFailed    uint64 `json:"sends_failed" metric:"sends_failed_total" doc:"Volumes whose sending ended before its end, also because it was cancelled."`
	ReceiptsFailed uint64 `json:"receptions_failed" metric:"receptions_failed_total" doc:"Volumes whose reception ended before its end, also because it was cancelled."`
	SentBytes      uint64 `json:"sent_bytes" metric:"sent_bytes_total" doc:"Data of volumes that were sent, with repetitions."`
	ReceivedBytes  uint64 `json:"received_bytes" metric:"received_bytes_total" doc:"Data of volumes that were received and stored."`
}

// LastApply is how a try to change the configuration ended.
type LastApply struct {
	OK bool      `json:"ok" metric:"config_last_apply_successful" doc:"Whether it was put into force."`
	At time.Time `json:"at" doc:"When."`
}

// StoreErrors are operations that a volume's store has failed, since it was opened.
type StoreErrors struct {
	Operation string `json:"operation" doc:"Kind of the operations, such as read, write or flush."`
	Count     uint64 `json:"count" doc:"How many."`
}

// Space is what a volume's file may still get of its file system.
type Space struct {
	Free        int64 `json:"free_bytes" metric:"filesystem_free_bytes" doc:"Free space of the file system of a volume's file."`
	Size        int64 `json:"size_bytes" metric:"filesystem_size_bytes" doc:"Size of that file system."`
	Unallocated int64 `json:"unallocated_bytes" metric:"unallocated_bytes" doc:"What a volume's file has not allocated yet: writes there fail when the file system is full."`
}

// Refusals are what was refused for one reason.
type Refusals struct {
	Reason string `json:"reason" doc:"Why, as docs/metrics.md lists it."`
	Count  uint64 `json:"count" doc:"How often."`
}

// Daemon is the process.
type Daemon struct {
	Version       string    `json:"version" doc:"Version of tgtd."`
	Build         string    `json:"build" doc:"Go version, platform and, when known, revision that it was built from."`
	PID           int       `json:"pid" doc:"Process ID."`
	Started       time.Time `json:"started" doc:"When the server started."`
	UptimeSeconds float64   `json:"uptime_seconds" doc:"Seconds since then."`
	RetainedBytes int64     `json:"retained_bytes" metric:"retained_bytes" doc:"Data that are kept for connections that were lost (ErrorRecoveryLevel 2)."`
	AuditMissing  uint64    `json:"audit_missing" metric:"audit_missing_total" doc:"Changes that are not in the audit file, because it could not be written."`
	Threads       []Thread  `json:"threads" nullable:"false" doc:"Event threads."`
}

// Thread is an event thread, which runs everything of its connections.
type Thread struct {
	Name            string  `json:"name" doc:"Name of the thread, as in /proc."`
	CPU             int     `json:"cpu" doc:"CPU that it is pinned to; -1: none."`
	Node            int     `json:"node" doc:"NUMA node; -1: unknown."`
	Connections     int     `json:"connections" metric:"connections" doc:"Connections that an event thread serves."`
	Passes          uint64  `json:"passes" metric:"passes_total" doc:"Turns of an event thread's loop."`
	Sleeps          uint64  `json:"sleeps" metric:"sleeps_total" doc:"Times that an event thread blocked because there was nothing to do."`
	Wakeups         uint64  `json:"wakeups" metric:"wakeups_total" doc:"Times that another thread woke an event thread."`
	Handovers       uint64  `json:"handovers" metric:"handovers_total" doc:"Tasks that other threads handed to an event thread; none for what the cache or a fast store serves."`
	Looks           uint64  `json:"looks" metric:"looks_total" doc:"Times that an idle event thread looked for work before going to sleep."`
	LooksInVain     uint64  `json:"looks_in_vain" metric:"looks_in_vain_total" doc:"Looks for work that found none."`
	BusySeconds     float64 `json:"busy_seconds" metric:"busy_seconds_total" doc:"Time in which an event thread had something to do."`
	RunSeconds      float64 `json:"run_seconds" doc:"Time since it began."`
	WaitedSeconds   float64 `json:"waited_seconds" metric:"waited_seconds_total" doc:"Time in which an event thread had something to do and no CPU: other processes, or other machines of the same host (steal), had it."`
	BufferBytes     int64   `json:"buffer_bytes" metric:"buffer_bytes" doc:"Size of an event thread's pool of data buffers."`
	BufferUsedBytes int64   `json:"buffer_used_bytes" metric:"buffer_used_bytes" doc:"What of an event thread's pool is handed out."`

	Refused map[string]uint64 `json:"refused" doc:"What it has refused to initiators, or ended of theirs, by reason."`
}

// Cache is the block cache of all volumes.
type Cache struct {
	SizeBytes        int64   `json:"size_bytes" metric:"size_bytes" doc:"Block data that the cache can hold."`
	BlockBytes       int64   `json:"block_bytes" doc:"Size of a cache block."`
	UsedBytes        int64   `json:"used_bytes" metric:"used_bytes" doc:"Cache blocks that hold data, or are about to."`
	DirtyBytes       int64   `json:"dirty_bytes" metric:"dirty_bytes" doc:"Cached data that the backing stores do not have yet."`
	DirtyLimitBytes  int64   `json:"dirty_limit_bytes" metric:"dirty_limit_bytes" doc:"Dirty data from which writes wait."`
	Hits             uint64  `json:"hits" metric:"hits_total" doc:"Reads of a block, or of a part, that found all they wanted. The hit ratio is hits in hits and misses."`
	Misses           uint64  `json:"misses" metric:"misses_total" doc:"Reads of a block, or of a part, that did not find all they wanted."`
	HitRatio         float64 `json:"hit_ratio" doc:"Hits in hits and misses since the start; 0 if there are none."`
	Bypassed         uint64  `json:"bypassed" metric:"bypassed_total" doc:"Reads and writes of a block that went past the cache."`
	Waits            uint64  `json:"waits" metric:"waits_total" doc:"Times that something waited for a block that another used."`
	Evictions        uint64  `json:"evictions" metric:"evictions_total" doc:"Blocks that made room for others."`
	FillErrors       uint64  `json:"fill_errors" metric:"fill_errors_total" doc:"Reads from a backing store into the cache that failed."`
	FlushedBytes     uint64  `json:"flushed_bytes" metric:"flushed_bytes_total" doc:"Dirty data that were written to backing stores."`
	FlushErrors      uint64  `json:"flush_errors" metric:"flush_errors_total" doc:"Writes of dirty data that failed; the data stay dirty."`
	ThrottledWrites  uint64  `json:"throttled_writes" metric:"throttled_writes_total" doc:"Writes that had to wait for the dirty limit."`
	WaitingWrites    int64   `json:"waiting_writes" metric:"waiting_writes" doc:"Writes that wait for the dirty limit now."`
	ReadAheadBytes   uint64  `json:"read_ahead_bytes" metric:"read_ahead_bytes_total" doc:"Data read ahead of sequential readers."`
	Nodes            []Node  `json:"nodes" nullable:"false" doc:"The cache's part of each NUMA node."`
	Attach           *Attach `json:"attach,omitempty" doc:"What was found in the shared memory segment at the start."`
	ChecksumFailures uint64  `json:"checksum_failures" metric:"checksum_failures_total" doc:"Parts of cache blocks that were found damaged in memory, with cache.checksum."`
	SegmentLost      bool    `json:"segment_lost" metric:"segment_lost" doc:"Whether the segment was removed, renamed or replaced while it is in use: a crash loses dirty data."`
	ForwardThreshold *int64  `json:"forward_threshold_bytes,omitempty" metric:"forward_threshold_bytes" doc:"Size from which a request is handed to the node of its data; absent if none is."`
	ForwardAdaptive  bool    `json:"forward_adaptive" doc:"Whether that size follows from measurements."`
}

// Node is the cache's part of a NUMA node.
type Node struct {
	Node           int    `json:"node" doc:"Number of the node, as the topology has it."`
	Partitions     int    `json:"partitions" doc:"Partitions of the cache on it."`
	SizeBytes      int64  `json:"size_bytes" metric:"cache_size_bytes" doc:"Block data that a NUMA node's partitions can hold."`
	UsedBytes      int64  `json:"used_bytes" metric:"cache_used_bytes" doc:"Blocks of a node that hold data, or are about to."`
	DirtyBytes     int64  `json:"dirty_bytes" metric:"cache_dirty_bytes" doc:"Data of a node that the backing stores do not have yet."`
	Hits           uint64 `json:"hits" metric:"cache_hits_total" doc:"Hits in a node's partitions."`
	Misses         uint64 `json:"misses" metric:"cache_misses_total" doc:"Misses in a node's partitions."`
	Evictions      uint64 `json:"evictions" metric:"cache_evictions_total" doc:"Evictions from a node's partitions."`
	Interpreted    uint64 `json:"interpreted" metric:"interpreted_requests_total" doc:"Requests of this node's event threads for which the node of their data was looked up; none if there is one node."`
	Local          uint64 `json:"local" metric:"local_requests_total" doc:"Requests served on this node, which has most of their data, also those that others have forwarded."`
	LocalBytes     uint64 `json:"local_bytes" metric:"local_bytes_total" doc:"Data of requests served on this node, which has most of them."`
	Remote         uint64 `json:"remote" metric:"remote_requests_total" doc:"Requests served on this node, though another has most of their data."`
	RemoteBytes    uint64 `json:"remote_bytes" metric:"remote_bytes_total" doc:"Data of requests served on this node, though another has most of them."`
	Forwarded      uint64 `json:"forwarded" metric:"forwarded_requests_total" doc:"Requests that this node handed to the node that has most of their data."`
	ForwardedBytes uint64 `json:"forwarded_bytes" metric:"forwarded_bytes_total" doc:"Data of requests that this node handed to the node that has most of them."`
}

// Attach is how a start found the cache of the process before it.
type Attach struct {
	Outcome    string   `json:"outcome" doc:"private (there is no segment), fresh (a new one), warm (the process before ended in order) or crashed (it did not)."`
	Previous   string   `json:"previous,omitempty" doc:"Version of tgtd that used the segment before."`
	Generation uint64   `json:"generation" doc:"Processes that have used the segment, this one included."`
	DirtyBytes int64    `json:"dirty_bytes" metric:"dirty_bytes" doc:"Dirty data that the start took over from the process before."`
	WarmBlocks int      `json:"warm_blocks" metric:"warm_blocks" doc:"Blocks that the start took over, dirty ones included."`
	Dropped    int      `json:"dropped_blocks" metric:"dropped_blocks" doc:"Clean blocks that the start did not take over, because their records were doubtful."`
	Replaced   string   `json:"replaced,omitempty" doc:"How the segment differed that was replaced by a new one."`
	Orphans    []Orphan `json:"orphans" nullable:"false" doc:"Volumes with dirty data in the segment that are not configured any more; the data are kept."`
}

// Orphan is a volume that the configuration does not have any more, while the
// cache has data that were never written to its store.
type Orphan struct {
	Name       string `json:"name" doc:"Name that the volume had."`
	DirtyBytes int64  `json:"dirty_bytes" doc:"Its dirty data."`
}

// Warning is how Warnings has it.
func (o *Orphan) Warning() string {
	return fmt.Sprintf("the cache keeps %s of volume %s, which is not served: its file or device is incomplete until it is configured again", bytesize.Text(o.DirtyBytes), o.Name)
}

// Volume is a backing store that is served as a logical unit.
type Volume struct {
	Name       string           `json:"name" doc:"Its name in the configuration."`
	Type       string           `json:"type" doc:"file, block, ram, null, gotgt, mirror or rbd."`
	SizeBytes  int64            `json:"size_bytes" metric:"size_bytes" doc:"Capacity of a volume."`
	BlockBytes int              `json:"block_bytes" doc:"Size of a logical block."`
	ReadOnly   bool             `json:"read_only" doc:"Whether it can be read only."`
	Write      string           `json:"write" doc:"When a write is acknowledged: through, back or sync."`
	Frozen     *FrozenVolume    `json:"frozen,omitempty" doc:"Commands are held, so that a copy can be made; absent: they are not."`
	Health     Health           `json:"health" doc:"Whether its data are available and to be trusted."`
	IO         IO               `json:"io" doc:"Commands and data of all sessions, past ones included."`
	Anew       uint64           `json:"protection_made_anew" metric:"protection_made_anew_blocks" doc:"Blocks whose protection information was made anew after a crash when the volume was opened last; the log names them."`
	Errors     []StoreErrors    `json:"store_errors" nullable:"false" doc:"What its store has failed; commands that were refused are not among it."`
	Space      *Space           `json:"space,omitempty" doc:"Of volumes in files: the file system."`
	Snapshots  *VolumeSnapshots `json:"snapshots,omitempty" doc:"Its snapshots; absent: there are none and no schedule."`
	Cache      *VolumeCache     `json:"cache,omitempty" doc:"Its part of the cache; absent if it is not cached."`
	Mirror     *Mirror          `json:"mirror,omitempty" doc:"Its members; absent if it is no mirror."`
	Excess     *Excess          `json:"excess,omitempty" doc:"Its writes in excess; absent if it has no device for them."`
}

// Mirror is what a mirror does.
type Mirror struct {
	Leader    string `json:"leader" doc:"The member that takes the writes now; the other one serves the reads."`
	Missing   string `json:"missing,omitempty" doc:"The member that was dropped; absent: none was."`
	Behind    int    `json:"behind_regions" metric:"behind_regions" doc:"Regions that a member of a mirror lacks, and that are copied to it."`
	Held      int64  `json:"held_bytes" metric:"held_bytes" doc:"Memory with data that a member of a mirror gets later."`
	Exchanged uint64 `json:"exchanged" metric:"exchanges_total" doc:"Exchanges of the roles of a mirror's members."`
	Copied    uint64 `json:"copied_regions" metric:"copied_regions_total" doc:"Regions that were copied to a member of a mirror that lacked them."`
	Mended    uint64 `json:"mended_reads" metric:"mended_reads_total" doc:"Reads that the other member of a mirror served after an error."`
	Lost      uint64 `json:"lost_members" metric:"lost_members_total" doc:"Members of a mirror that were dropped."`
	Differ    int64  `json:"differing_regions" metric:"differing_regions" doc:"Regions in which the members of a mirror differed when they were compared last, and that were not copied since."`
}

// Excess is what becomes of writes in excess.
type Excess struct {
	Held int64  `json:"held_bytes" metric:"held_bytes" doc:"Data that only the device for writes in excess has."`
	Used int    `json:"used_percent" metric:"used_percent" doc:"Share of the segment that takes writes in excess now, in percent."`
	Slow uint64 `json:"slow_writes" metric:"slow_writes_total" doc:"Changes of a volume with a device for writes in excess that its own device took."`
	Fast uint64 `json:"fast_writes" metric:"fast_writes_total" doc:"Writes in excess."`
	Back uint64 `json:"written_back" metric:"written_back_total" doc:"Writes in excess that were written back."`
}

// Health is how a volume is.
type Health struct {
	State    string    `json:"state" enum:"ok,degraded,failed" doc:"degraded: it is served, but something is wrong; failed: data are not available, or not to be trusted."`
	Troubles []Trouble `json:"troubles" nullable:"false" doc:"What is wrong."`
}

// Trouble is something that is wrong with a volume.
type Trouble struct {
	State string    `json:"state" enum:"degraded,failed" doc:"How bad it is."`
	What  string    `json:"what" doc:"What it is, in words."`
	Since time.Time `json:"since" doc:"Since when, as far as it was noticed."`
}

// DirtyTrouble begins the Trouble of a volume whose data only the cache has.
const DirtyTrouble = "dirty data cannot be written"

// The states of a volume.
const (
	HealthOK       = "ok"
	HealthDegraded = "degraded"
	HealthFailed   = "failed"
)

// VolumeCache is what the cache knows of a volume.
type VolumeCache struct {
	ResidentBytes   int64      `json:"resident_bytes" metric:"resident_bytes" doc:"Blocks of a volume in the cache; absent if it is not cached."`
	DirtyBytes      int64      `json:"dirty_bytes" metric:"dirty_bytes" doc:"Data of a volume that its backing store does not have yet."`
	Hits            uint64     `json:"hits" metric:"hits_total" doc:"Reads of a block, or of a part, that found all they wanted."`
	Misses          uint64     `json:"misses" metric:"misses_total" doc:"Reads of a block, or of a part, that did not."`
	HitRatio        float64    `json:"hit_ratio" doc:"Hits in hits and misses since the start; 0 if there are none."`
	Admission       string     `json:"admission" doc:"Blocks that the cache admits: lru (all) or fussy (popular ones)."`
	Fussy           *Fussy     `json:"fussy,omitempty" doc:"State of the fussy admission; absent with lru."`
	ThrottledWrites uint64     `json:"throttled_writes" metric:"throttled_writes_total" doc:"Writes to a volume that had to wait for the dirty limit."`
	FlushFailing    bool       `json:"flush_failing" metric:"flush_failing" doc:"Whether dirty data of a volume cannot be written now; they stay in the cache and new writes go through."`
	FailingSince    *time.Time `json:"failing_since,omitempty" doc:"Since when."`
}

// Fussy is the state of a volume's FussyCache, which each partition runs for
// itself.
type Fussy struct {
	Partitions      int    `json:"partitions" metric:"partitions" doc:"Partitions that run fussy admission for a volume; absent with lru."`
	FallenBack      int    `json:"fallen_back" metric:"fallen_back" doc:"Partitions with fussy admission that admit everything now because the hit rate fell."`
	Switches        uint64 `json:"switches" metric:"switches_total" doc:"Changes between fussy and lru in all partitions."`
	Counted         int    `json:"counted" doc:"Blocks whose accesses are counted."`
	Popular         int    `json:"popular" doc:"Of them, those that enter at the next tick."`
	FreqThreshold   int    `json:"freq_threshold" doc:"A block is popular after more accesses than this."`
	AccessThreshold int    `json:"access_threshold" doc:"Accesses between ticks."`
}

// Target is a target node.
type Target struct {
	Name     string   `json:"name" doc:"iSCSI name."`
	Alias    string   `json:"alias,omitempty" doc:"Alias, if it has one."`
	Portals  []string `json:"portals" nullable:"false" doc:"Addresses that it listens on, with iser: in front of those over RDMA."`
	Volumes  []string `json:"volumes" nullable:"false" doc:"Volumes that it shows to anyone, by name."`
	Sessions int      `json:"sessions" doc:"Sessions that are open."`
}

// Session is an initiator's session.
type Session struct {
	TSIH      int          `json:"tsih" doc:"Target session identifying handle."`
	Initiator string       `json:"initiator" doc:"iSCSI name of the initiator."`
	Alias     string       `json:"alias,omitempty" doc:"Alias that the initiator gave."`
	User      string       `json:"user,omitempty" doc:"Auth group and CHAP user, GROUP/USER, that the initiator has proven to be; the name alone is a claim."`
	ISID      string       `json:"isid" doc:"Initiator's part of the session's identity, hexadecimal."`
	Target    string       `json:"target,omitempty" doc:"iSCSI name of the target; empty in a discovery session."`
	Transport string       `json:"transport" doc:"What carries it: tcp or iser."`
	Portal    string       `json:"portal" doc:"Address of the server that it came in on."`
	Address   string       `json:"address" doc:"Address of the initiator."`
	Connected time.Time    `json:"connected" doc:"When it was opened."`
	Thread    string       `json:"thread" doc:"Event thread that serves it."`
	Window    int          `json:"window" metric:"window_commands" doc:"Commands that a session may have in flight."`
	InFlight  int          `json:"in_flight" metric:"commands_in_flight" doc:"Commands that a session has in flight."`
	LUNs      []SessionLUN `json:"luns" nullable:"false" doc:"What it sees."`

	Connections []SessionConnection `json:"connections" nullable:"false" doc:"Its connections, oldest first."`
}

// SessionConnection is one connection of a session.
type SessionConnection struct {
	CID          int    `json:"cid" doc:"Number that the initiator gave it."`
	Portal       string `json:"portal" doc:"Address of the server that it came in on."`
	Address      string `json:"address" doc:"Address of the initiator."`
	Transport    string `json:"transport" doc:"What carries it: tcp or iser."`
	Thread       string `json:"thread" doc:"Event thread that serves it: all connections of a session have the same."`
	State        string `json:"state" doc:"open, or lost: broken off at ErrorRecoveryLevel 2, when its commands wait for another connection."`
	ReadBytes    uint64 `json:"read_bytes" doc:"Data sent to the initiator by commands that ended on it."`
	WrittenBytes uint64 `json:"written_bytes" doc:"Data taken from the initiator by commands that ended on it."`
}

// SessionLUN is a volume as a session sees it.
type SessionLUN struct {
	LUN      int    `json:"lun" doc:"Logical unit number."`
	Volume   string `json:"volume" doc:"Volume behind it."`
	ReadOnly bool   `json:"read_only" doc:"Whether the session may only read."`
	IO       IO     `json:"io" doc:"Commands and data of the session."`
}

// IO counts commands that have ended and the data that they moved.
type IO struct {
	Reads        uint64 `json:"reads" metric:"reads_total" doc:"Commands that send data to the initiator, by whatever name."`
	Writes       uint64 `json:"writes" metric:"writes_total" doc:"Commands that take data from the initiator."`
	Others       uint64 `json:"others" metric:"other_commands_total" doc:"Commands without data."`
	ReadBytes    uint64 `json:"read_bytes" metric:"read_bytes_total" doc:"Data sent to the initiator."`
	WrittenBytes uint64 `json:"written_bytes" metric:"written_bytes_total" doc:"Data taken from the initiator by commands that ended well."`
}

// Ratio returns hits in hits and misses; 0 if there are none.
func Ratio(hits, misses uint64) float64 {
	if hits+misses == 0 {
		return 0
	}
	return float64(hits) / float64(hits+misses)
}
