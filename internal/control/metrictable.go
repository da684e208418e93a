package control

import (
	"maps"
	"slices"
	"strconv"
)

// allMetrics returns the rows of all tables. docs/metrics.md shows them.
func allMetrics() []metric {
	var all []metric
	for _, table := range [][]metric{serverMetrics, threadMetrics, cacheMetrics, nodeMetrics, volumeMetrics, sessionMetrics, rdmaMetrics, qosMetrics} {
		all = append(all, table...)
	}
	return all
}

var serverMetrics = []metric{
	{"lunar_build_info", "", "Always 1; the labels name the version.", gauge, []string{"version", "build"},
		func(s *Status, emit emitter) { emit(1, s.Server.Version, s.Server.Build) }},
	{"lunar_start_time_seconds", "s", "Unix time of the start.", gauge, nil,
		func(s *Status, emit emitter) { emit(float64(s.Server.Started.UnixMilli()) / 1000) }},
	{"lunar_sessions", "", "Sessions that are open, discovery sessions included.", gauge, nil,
		func(s *Status, emit emitter) { emit(float64(len(s.Sessions))) }},
	{"lunar_retained_bytes", "bytes", "Data that are kept for connections that were lost (ErrorRecoveryLevel 2).", gauge, nil,
		func(s *Status, emit emitter) { emit(float64(s.Server.RetainedBytes)) }},
	{"lunar_refusals_total", "", "What was refused or taken away, by reason.", counter, []string{"reason"},
		func(s *Status, emit emitter) {
			for _, r := range s.Refusals {
				emit(float64(r.Count), r.Reason)
			}
		}},
	{"lunar_config_drift", "", "Things in which the server is other than its configuration file says, as it was read last.", gauge, []string{"kind"},
		func(s *Status, emit emitter) {
			for _, kind := range DriftKinds {
				n := 0
				for _, d := range s.Drift {
					if d.Kind == kind {
						n++
					}
				}
				emit(float64(n), kind)
			}
		}},
	{"lunar_target_sessions", "", "Sessions of a target that are open.", gauge, []string{"target"},
		func(s *Status, emit emitter) {
			for i := range s.Targets {
				emit(float64(s.Targets[i].Sessions), s.Targets[i].Name)
			}
		}},
}

// ofThreads makes a metric of every event thread.
func ofThreads(value func(*Thread) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Server.Threads {
			t := &s.Server.Threads[i]
			emit(value(t), t.Name, strconv.Itoa(t.Node))
		}
	}
}

var threadLabels = []string{"thread", "node"}

var threadMetrics = []metric{
	{"lunar_thread_connections", "", "Connections that an event thread serves.", gauge, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Connections) })},
	{"lunar_thread_passes_total", "", "Turns of an event thread's loop.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Passes) })},
	{"lunar_thread_sleeps_total", "", "Times that an event thread blocked because there was nothing to do.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Sleeps) })},
	{"lunar_thread_wakeups_total", "", "Times that another thread woke an event thread.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Wakeups) })},
	{"lunar_thread_handovers_total", "", "Tasks that other threads handed to an event thread.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Handovers) })},
	{"lunar_thread_looks_total", "", "Idle times in which an event thread looked for work before it would have slept.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Looks) })},
	{"lunar_thread_looks_in_vain_total", "", "Of them, those in which no work came.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.LooksInVain) })},
	{"lunar_thread_rests_total", "", "Times that an event thread left its connections alone to gather requests.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Rests) })},
	{"lunar_thread_batch_level", "", "Responses of a connection that leave together.", gauge, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.BatchLevel) })},
	{"lunar_thread_batches_total", "", "Turns in which small requests came to an event thread.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.Batches) })},
	{"lunar_thread_batched_requests_total", "", "Small requests that came in them.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.BatchedRequests) })},
	{"lunar_thread_busy_seconds_total", "s", "Time in which an event thread had something to do.", counter, threadLabels,
		ofThreads(func(t *Thread) float64 { return t.BusySeconds })},
	{"lunar_thread_buffer_bytes", "bytes", "Size of an event thread's pool of data buffers.", gauge, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.BufferBytes) })},
	{"lunar_thread_buffer_used_bytes", "bytes", "What of an event thread's pool is handed out.", gauge, threadLabels,
		ofThreads(func(t *Thread) float64 { return float64(t.BufferUsedBytes) })},
	{"lunar_thread_refused_total", "", "What an event thread has refused to initiators, or ended of theirs.", counter, []string{"thread", "node", "reason"},
		func(s *Status, emit emitter) {
			for i := range s.Server.Threads {
				t := &s.Server.Threads[i]
				for _, reason := range slices.Sorted(maps.Keys(t.Refused)) {
					emit(float64(t.Refused[reason]), t.Name, strconv.Itoa(t.Node), reason)
				}
			}
		}},
}

// ofCache makes a metric of the cache, if there is one.
func ofCache(value func(*Cache) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.Cache != nil {
			emit(value(s.Cache))
		}
	}
}

// ofAttach makes a metric of the re-attach, if there is a cache.
func ofAttach(value func(*Attach) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.Cache != nil && s.Cache.Attach != nil {
			emit(value(s.Cache.Attach))
		}
	}
}

var cacheMetrics = []metric{
	{"lunar_cache_size_bytes", "bytes", "Block data that the cache can hold.", gauge, nil,
		ofCache(func(c *Cache) float64 { return float64(c.SizeBytes) })},
	{"lunar_cache_used_bytes", "bytes", "Cache blocks that hold data, or are about to.", gauge, nil,
		ofCache(func(c *Cache) float64 { return float64(c.UsedBytes) })},
	{"lunar_cache_dirty_bytes", "bytes", "Cached data that the backing stores do not have yet.", gauge, nil,
		ofCache(func(c *Cache) float64 { return float64(c.DirtyBytes) })},
	{"lunar_cache_dirty_limit_bytes", "bytes", "Dirty data from which writes wait.", gauge, nil,
		ofCache(func(c *Cache) float64 { return float64(c.DirtyLimitBytes) })},
	{"lunar_cache_hits_total", "", "Reads of a block, or of a part, that found all they wanted. The hit ratio is hits in hits and misses.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Hits) })},
	{"lunar_cache_misses_total", "", "Reads of a block, or of a part, that did not find all they wanted.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Misses) })},
	{"lunar_cache_bypassed_total", "", "Reads and writes of a block that went past the cache.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Bypassed) })},
	{"lunar_cache_waits_total", "", "Times that something waited for a block that another used.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Waits) })},
	{"lunar_cache_evictions_total", "", "Blocks that made room for others.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Evictions) })},
	{"lunar_cache_copies_total", "", "Writes to a fresh copy of a block that was being sent.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.Copies) })},
	{"lunar_cache_fill_errors_total", "", "Reads from a backing store into the cache that failed.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.FillErrors) })},
	{"lunar_cache_flushed_bytes_total", "bytes", "Dirty data that were written to backing stores.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.FlushedBytes) })},
	{"lunar_cache_flush_errors_total", "", "Writes of dirty data that failed; the data stay dirty.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.FlushErrors) })},
	{"lunar_cache_throttled_writes_total", "", "Writes that had to wait for the dirty limit.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.ThrottledWrites) })},
	{"lunar_cache_waiting_writes", "", "Writes that wait for the dirty limit now.", gauge, nil,
		ofCache(func(c *Cache) float64 { return float64(c.WaitingWrites) })},
	{"lunar_cache_read_ahead_bytes_total", "bytes", "Data read ahead of sequential readers.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.ReadAheadBytes) })},
	{"lunar_cache_checksum_failures_total", "", "Parts of cache blocks that were found damaged in memory, with cache.checksum.", counter, nil,
		ofCache(func(c *Cache) float64 { return float64(c.ChecksumFailures) })},
	{"lunar_cache_segment_lost", "", "1 when the segment was removed, renamed or replaced while it is in use: a crash loses what is dirty.", gauge, nil,
		ofCache(func(c *Cache) float64 {
			if c.SegmentLost {
				return 1
			}
			return 0
		})},
	{"lunar_cache_forward_threshold_bytes", "bytes", "Size from which a request is handed to the node of its data; absent if none is.", gauge, nil,
		func(s *Status, emit emitter) {
			if s.Cache != nil && s.Cache.ForwardThreshold != nil {
				emit(float64(*s.Cache.ForwardThreshold))
			}
		}},
	{"lunar_cache_attach_info", "", "Always 1; the label tells what the start found: private (there is no segment), fresh, warm or crashed.", gauge, []string{"outcome"},
		func(s *Status, emit emitter) {
			if s.Cache != nil && s.Cache.Attach != nil {
				emit(1, s.Cache.Attach.Outcome)
			}
		}},
	{"lunar_cache_attach_dirty_bytes", "bytes", "Dirty data that the start took over from the process before.", gauge, nil,
		ofAttach(func(a *Attach) float64 { return float64(a.DirtyBytes) })},
	{"lunar_cache_attach_warm_blocks", "", "Blocks that the start took over, dirty ones included.", gauge, nil,
		ofAttach(func(a *Attach) float64 { return float64(a.WarmBlocks) })},
	{"lunar_cache_attach_dropped_blocks", "", "Clean blocks that the start did not take over, because their records were doubtful.", gauge, nil,
		ofAttach(func(a *Attach) float64 { return float64(a.Dropped) })},
	{"lunar_cache_orphan_dirty_bytes", "bytes", "Data in the segment of volumes that are not configured any more; they are kept.", gauge, []string{"volume"},
		func(s *Status, emit emitter) {
			if s.Cache == nil || s.Cache.Attach == nil {
				return
			}
			sums := map[string]int64{} // names of orphans need not be unique
			for _, o := range s.Cache.Attach.Orphans {
				sums[o.Name] += o.DirtyBytes
			}
			for name, bytes := range sums {
				emit(float64(bytes), name)
			}
		}},
}

// ofNodes makes a metric of the cache's part of every NUMA node.
func ofNodes(value func(*Node) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.Cache == nil {
			return
		}
		for i := range s.Cache.Nodes {
			n := &s.Cache.Nodes[i]
			emit(value(n), strconv.Itoa(n.Node))
		}
	}
}

var nodeLabels = []string{"node"}

var nodeMetrics = []metric{
	{"lunar_node_cache_size_bytes", "bytes", "Block data that a NUMA node's partitions can hold.", gauge, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.SizeBytes) })},
	{"lunar_node_cache_used_bytes", "bytes", "Blocks of a node that hold data, or are about to.", gauge, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.UsedBytes) })},
	{"lunar_node_cache_dirty_bytes", "bytes", "Data of a node that the backing stores do not have yet.", gauge, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.DirtyBytes) })},
	{"lunar_node_cache_hits_total", "", "Hits in a node's partitions.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Hits) })},
	{"lunar_node_cache_misses_total", "", "Misses in a node's partitions.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Misses) })},
	{"lunar_node_cache_evictions_total", "", "Evictions from a node's partitions.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Evictions) })},
	{"lunar_node_interpreted_requests_total", "", "Requests of this node's event threads for which the node of their data was looked up; none if there is one node.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Interpreted) })},
	{"lunar_node_local_requests_total", "", "Requests served on this node, which has most of their data, also those that others have forwarded.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Local) })},
	{"lunar_node_local_bytes_total", "bytes", "Data of these.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.LocalBytes) })},
	{"lunar_node_remote_requests_total", "", "Requests served on this node, though another has most of their data.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Remote) })},
	{"lunar_node_remote_bytes_total", "bytes", "Data of these.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.RemoteBytes) })},
	{"lunar_node_forwarded_requests_total", "", "Requests that this node handed to the node that has most of their data.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.Forwarded) })},
	{"lunar_node_forwarded_bytes_total", "bytes", "Data of these.", counter, nodeLabels,
		ofNodes(func(n *Node) float64 { return float64(n.ForwardedBytes) })},
}
