package server

import (
	"maps"
	"slices"
	"strconv"

	"lunar/control"
)

// allMetrics returns the rows of all tables. docs/metrics.md shows them. Numbers
// of the status have their rows there, as tags; the tables here have the rest.
func allMetrics() []metric {
	return slices.Concat(
		serverMetrics, rowsOf("lunar_", nil, eachServer),
		rowsOf("lunar_thread_", threadLabels, eachThread), threadMetrics,
		rowsOf("lunar_cache_", nil, eachCache), cacheMetrics, rowsOf("lunar_cache_attach_", nil, eachAttach),
		rowsOf("lunar_node_", nodeLabels, eachNode),
		volumeMetrics, rowsOf("lunar_volume_", volumeLabels, eachVolume), rowsOf("lunar_volume_", volumeLabels, eachVolumeIO),
		rowsOf("lunar_volume_cache_", volumeLabels, eachCached), rowsOf("lunar_volume_fussy_", volumeLabels, eachFussy),
		rowsOf("lunar_volume_mirror_", volumeLabels, eachMirror), rowsOf("lunar_volume_excess_", volumeLabels, eachExcess), rowsOf("lunar_volume_", volumeLabels, eachSnapshots),
		rowsOf("lunar_session_", sessionLabels, eachSession), rowsOf("lunar_session_", lunLabels, eachLUN),
		rdmaMetrics, rowsOf("lunar_rdma_", rdmaLabels, eachRDMADevice),
		incidentMetrics, rowsOf("lunar_", nil, eachIncidents), rowsOf("lunar_", nil, eachApply), rowsOf("lunar_moves_", nil, eachMoves), rowsOf("lunar_volume_", volumeLabels, eachSpace),
		clusterMetrics, rowsOf("lunar_cluster_", nil, eachCluster), rowsOf("lunar_cluster_volume_", volumeLabels, eachClusterVolume),
		rowsOf("lunar_cluster_promise_", nil, eachKept), rowsOf("lunar_cluster_promise_node_", nodeLabels, eachKeptOf),
		rowsOf("lunar_", nil, eachLatency),
		rowsOf("lunar_link_", linkLabels, eachLink),
		qosMetrics, rowsOf("lunar_qos_", deviceLabels, eachDevice), rowsOf("lunar_qos_", onThreadLabel, eachThreadCapacity), rowsOf("lunar_qos_", flowLabels, eachFlow), rowsOf("lunar_qos_", promiseLabels, eachPromise),
	)
}

// allDistributions is the same of histograms.
func allDistributions() []distribution { return slices.Concat(latencyDistributions, qosDistributions) }

var serverMetrics = []metric{
	{"lunar_build_info", "", "Always 1; the labels name the version.", gauge, []string{"version", "build"},
		func(s *control.Status, emit emitter) { emit(1, s.Server.Version, s.Server.Build) }},
	{"lunar_start_time_seconds", "s", "Unix time of the start.", gauge, nil,
		func(s *control.Status, emit emitter) { emit(float64(s.Server.Started.UnixMilli()) / 1000) }},
	{"lunar_sessions", "", "Sessions that are open, discovery sessions included.", gauge, nil,
		func(s *control.Status, emit emitter) { emit(float64(len(s.Sessions))) }},
	{"lunar_refusals_total", "", "What was refused or taken away, by reason.", counter, []string{"reason"},
		func(s *control.Status, emit emitter) {
			for _, r := range s.Refusals {
				emit(float64(r.Count), r.Reason)
			}
		}},
	{"lunar_config_drift", "", "Things in which the server is other than its configuration file says, as it was read last.", gauge, []string{"kind"},
		func(s *control.Status, emit emitter) {
			for _, kind := range control.DriftKinds {
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
		func(s *control.Status, emit emitter) {
			for i := range s.Targets {
				emit(float64(s.Targets[i].Sessions), s.Targets[i].Name)
			}
		}},
}

func eachServer(s *control.Status, yield func(*control.Daemon, ...string)) { yield(&s.Server) }

func eachThread(s *control.Status, yield func(*control.Thread, ...string)) {
	for i := range s.Server.Threads {
		t := &s.Server.Threads[i]
		yield(t, t.Name, strconv.Itoa(t.Node))
	}
}

var threadLabels = []string{"thread", "node"}

var threadMetrics = []metric{
	{"lunar_thread_refused_total", "", "What an event thread has refused to initiators, or ended of theirs.", counter, []string{"thread", "node", "reason"},
		func(s *control.Status, emit emitter) {
			for i := range s.Server.Threads {
				t := &s.Server.Threads[i]
				for _, reason := range slices.Sorted(maps.Keys(t.Refused)) {
					emit(float64(t.Refused[reason]), t.Name, strconv.Itoa(t.Node), reason)
				}
			}
		}},
}

// eachCache has the cache, if there is one.
func eachCache(s *control.Status, yield func(*control.Cache, ...string)) {
	if s.Cache != nil {
		yield(s.Cache)
	}
}

// eachAttach has the re-attach, if there is a cache.
func eachAttach(s *control.Status, yield func(*control.Attach, ...string)) {
	if s.Cache != nil && s.Cache.Attach != nil {
		yield(s.Cache.Attach)
	}
}

var cacheMetrics = []metric{
	{"lunar_cache_attach_info", "", "Always 1; the label tells what the start found: private (there is no segment), fresh, warm or crashed.", gauge, []string{"outcome"},
		func(s *control.Status, emit emitter) {
			if s.Cache != nil && s.Cache.Attach != nil {
				emit(1, s.Cache.Attach.Outcome)
			}
		}},
	{"lunar_cache_orphan_dirty_bytes", "bytes", "Data in the segment of volumes that are not configured any more; they are kept.", gauge, []string{"volume"},
		func(s *control.Status, emit emitter) {
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

// eachNode has the cache's part of every NUMA node.
func eachNode(s *control.Status, yield func(*control.Node, ...string)) {
	if s.Cache == nil {
		return
	}
	for i := range s.Cache.Nodes {
		n := &s.Cache.Nodes[i]
		yield(n, strconv.Itoa(n.Node))
	}
}

var nodeLabels = []string{"node"}
