package overview

import (
	"cmp"
	"slices"

	"lunar/control"
)

// seenVolumes are the volumes, the busiest first, and the sum of them.
func (s *span) seenVolumes() []control.SeenVolume {
	now, before := latencies(&s.now.Latencies), latencies(&s.before.Latencies)
	s.out.HeatBounds = bounds(&s.now.Latencies)
	out := []control.SeenVolume{}
	for i := range s.now.Status.Volumes {
		v := &s.now.Status.Volumes[i]
		was := s.cached[v.Name]
		seen := control.SeenVolume{
			Volume: v.Name, State: cmp.Or(v.Health.State, control.HealthOK), Wrong: []string{}, Device: s.devices[v.Name], Size: v.SizeBytes,
			Frozen: v.Frozen != nil, Rates: s.rates(&v.IO, &was.IO), Recent: []control.OperationQuantile{},
			Snapshots: v.Snapshots, Heat: heat(len(s.out.HeatBounds), now[v.Name], before[v.Name]),
		}
		for _, t := range v.Health.Troubles {
			seen.Wrong = append(seen.Wrong, t.What)
		}
		if l := now[v.Name]; l != nil {
			seen.Recent = filled(l.Recent)
		}
		if c := v.Cache; c != nil {
			old := control.VolumeCache{}
			if was.Cache != nil {
				old = *was.Cache
			}
			seen.HitRatio = s.hitRatio(s.perSecond(c.Hits, old.Hits), s.perSecond(c.Misses, old.Misses))
			seen.Dirty, seen.Failing = c.DirtyBytes, c.FlushFailing
		}
		add(&s.out.Total, seen.Rates)
		out = append(out, seen)
	}
	slices.SortStableFunc(out, func(a, b control.SeenVolume) int { return busiest(&a.Rates, &b.Rates) })
	return out
}

func latencies(l *control.Latencies) map[string]*control.VolumeLatency {
	all := map[string]*control.VolumeLatency{}
	for i := range l.Volumes {
		all[l.Volumes[i].Volume] = &l.Volumes[i]
	}
	return all
}

// bounds are those of the buckets, which all volumes have alike.
func bounds(l *control.Latencies) []float64 {
	out := []float64{}
	if len(l.Volumes) > 0 && len(l.Volumes[0].Total) > 0 {
		for _, b := range l.Volumes[0].Total[0].Latency.Buckets {
			out = append(out, b.Below)
		}
	}
	return out
}

// heat is how many reads and writes ended between the two, by how long they took.
func heat(buckets int, now, before *control.VolumeLatency) []uint64 {
	out := make([]uint64, buckets+1)
	if now == nil || buckets == 0 {
		return []uint64{}
	}
	count(out, now, func(to *uint64, n uint64) { *to += n })
	if before != nil {
		count(out, before, func(to *uint64, n uint64) { *to -= min(*to, n) })
	}
	return out
}

// count takes the commands of each bucket that moved data; those of the API are sums of all
// that are shorter.
func count(out []uint64, l *control.VolumeLatency, take func(*uint64, uint64)) {
	for i := range l.Total {
		if l.Total[i].Operation == "other" {
			continue
		}
		shorter, all := int64(0), &l.Total[i].Latency
		for j, b := range all.Buckets[:min(len(all.Buckets), len(out)-1)] {
			take(&out[j], uint64(max(0, b.Count-shorter)))
			shorter = b.Count
		}
		take(&out[len(out)-1], uint64(max(0, all.Count-shorter)))
	}
}

// threads are the event threads.
func (s *span) threads() []control.SeenThread {
	before, can := map[string]*control.Thread{}, map[string]*control.ThreadCapacity{}
	for i := range s.before.Status.Server.Threads {
		before[s.before.Status.Server.Threads[i].Name] = &s.before.Status.Server.Threads[i]
	}
	for i := range s.now.QoS.Capacity.Threads {
		can[s.now.QoS.Capacity.Threads[i].Name] = &s.now.QoS.Capacity.Threads[i]
	}
	out := []control.SeenThread{}
	for i := range s.now.Status.Server.Threads {
		t := &s.now.Status.Server.Threads[i]
		old := before[t.Name]
		if old == nil {
			old = &control.Thread{}
		}
		seen := control.SeenThread{
			Name: t.Name, CPU: t.CPU, Node: t.Node, Connections: t.Connections, Passes: s.perSecond(t.Passes, old.Passes),
			Busy: share(t.BusySeconds-old.BusySeconds, t.RunSeconds-old.RunSeconds), Waited: share(t.WaitedSeconds-old.WaitedSeconds, t.RunSeconds-old.RunSeconds), Buffers: share(float64(t.BufferUsedBytes), float64(t.BufferBytes)),
		}
		if c := can[t.Name]; c != nil {
			seen.Tokens, seen.Served = c.Tokens, c.Served
		}
		out = append(out, seen)
	}
	return out
}

// seenDevices are the backing devices, with what goes to their volumes.
func (s *span) seenDevices() []control.SeenDevice {
	rates := map[string]control.Rates{}
	for i := range s.out.Volumes {
		v := &s.out.Volumes[i]
		r := rates[v.Device]
		add(&r, v.Rates)
		rates[v.Device] = r
	}
	out := []control.SeenDevice{}
	for _, d := range s.now.QoS.Capacity.Devices {
		out = append(out, control.SeenDevice{
			Name: d.Name, Volumes: filled(d.Volumes), Tokens: d.Tokens, Reserved: d.Reserved, Rates: rates[d.Name],
			Full: slices.Contains(s.now.QoS.Capacity.Bottleneck, control.DeviceBottleneck(d.Name)),
		})
	}
	return out
}

// cache is nil if there is none.
func (s *span) cache() *control.SeenCache {
	c, old := s.now.Status.Cache, s.before.Status.Cache
	if c == nil {
		return nil
	}
	if old == nil {
		old = &control.Cache{}
	}
	seen := &control.SeenCache{
		Size: c.SizeBytes, Used: c.UsedBytes, Dirty: c.DirtyBytes, DirtyLimit: c.DirtyLimitBytes, Waiting: c.WaitingWrites,
		Hits: s.perSecond(c.Hits, old.Hits), Misses: s.perSecond(c.Misses, old.Misses), Flushed: s.perSecond(c.FlushedBytes, old.FlushedBytes),
		Evictions: s.perSecond(c.Evictions, old.Evictions), Throttled: s.perSecond(c.ThrottledWrites, old.ThrottledWrites), Nodes: []control.SeenNode{},
	}
	seen.HitRatio = s.hitRatio(seen.Hits, seen.Misses)
	before := map[int]*control.Node{}
	for i := range old.Nodes {
		before[old.Nodes[i].Node] = &old.Nodes[i]
	}
	for i := range c.Nodes {
		n, was := &c.Nodes[i], before[c.Nodes[i].Node]
		if was == nil {
			was = &control.Node{}
		}
		seen.Nodes = append(seen.Nodes, control.SeenNode{
			Node: n.Node, Size: n.SizeBytes, Used: n.UsedBytes, Dirty: n.DirtyBytes,
			HitRatio: s.hitRatio(s.perSecond(n.Hits, was.Hits), s.perSecond(n.Misses, was.Misses)),
			Local:    s.perSecond(n.LocalBytes, was.LocalBytes), Remote: s.perSecond(n.RemoteBytes, was.RemoteBytes), Forwarded: s.perSecond(n.ForwardedBytes, was.ForwardedBytes),
		})
	}
	return seen
}
