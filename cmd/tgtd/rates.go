package main

import "lunar/internal/control"

// interval is what lies between two statuses of a server.
type interval struct{ seconds float64 }

// ratesOf returns now with what each counter that is shown grew by in a second
// since before. A server that was started anew in between has grown from zero.
func ratesOf(now, before *control.Status) control.Status {
	s := *now
	if !before.Server.Started.Equal(now.Server.Started) {
		before = &control.Status{}
	}
	i := interval{max(now.Server.UptimeSeconds-before.Server.UptimeSeconds, 1e-3)}
	s.Server.Threads = i.threads(now.Server.Threads, before.Server.Threads)
	s.RDMA = i.rdma(now.RDMA, before.RDMA)
	s.Cache = i.cache(now.Cache, before.Cache)
	s.Volumes = i.volumes(now.Volumes, before.Volumes)
	s.Sessions = i.sessions(now.Sessions, before.Sessions)
	return s
}

func (i interval) rate(now, before uint64) uint64 {
	if now < before {
		before = 0
	}
	return uint64(float64(now-before)/i.seconds + 0.5)
}

func (i interval) io(now, before control.IO) control.IO {
	return control.IO{
		Reads: i.rate(now.Reads, before.Reads), Writes: i.rate(now.Writes, before.Writes), Others: i.rate(now.Others, before.Others),
		ReadBytes: i.rate(now.ReadBytes, before.ReadBytes), WrittenBytes: i.rate(now.WrittenBytes, before.WrittenBytes),
	}
}

// threads have the times of the interval, and rates.
func (i interval) threads(now, before []control.Thread) []control.Thread {
	old := byKey(before, func(t *control.Thread) string { return t.Name })
	out := append([]control.Thread(nil), now...)
	for j := range out {
		o := old[out[j].Name]
		out[j].BusySeconds -= o.BusySeconds
		out[j].RunSeconds -= o.RunSeconds
		out[j].Looks = i.rate(out[j].Looks, o.Looks)
		out[j].LooksInVain = i.rate(out[j].LooksInVain, o.LooksInVain)
		out[j].Handovers = i.rate(out[j].Handovers, o.Handovers)
	}
	return out
}

// rdma has rates of what is shown.
func (i interval) rdma(now, before *control.RDMA) *control.RDMA {
	if now == nil {
		return nil
	}
	if before == nil {
		before = &control.RDMA{}
	}
	out := *now
	out.Devices = append([]control.RDMADevice(nil), now.Devices...)
	old := byKey(before.Devices, func(d *control.RDMADevice) string { return d.Name })
	for j := range out.Devices {
		d, o := &out.Devices[j], old[out.Devices[j].Name]
		for _, f := range []struct {
			value *uint64
			old   uint64
		}{
			{&d.Receives, o.Receives}, {&d.Sends, o.Sends}, {&d.Writes, o.Writes}, {&d.Reads, o.Reads},
			{&d.WriteBytes, o.WriteBytes}, {&d.ReadBytes, o.ReadBytes}, {&d.Posts, o.Posts},
		} {
			*f.value = i.rate(*f.value, f.old)
		}
	}
	return &out
}

func (i interval) cache(now, before *control.Cache) *control.Cache {
	if now == nil {
		return nil
	}
	if before == nil {
		before = &control.Cache{}
	}
	c := *now
	c.HitRatio = control.Ratio(now.Hits-before.Hits, now.Misses-before.Misses)
	for _, f := range []struct {
		value *uint64
		old   uint64
	}{
		{&c.Hits, before.Hits}, {&c.Misses, before.Misses}, {&c.Bypassed, before.Bypassed}, {&c.Evictions, before.Evictions},
		{&c.FlushedBytes, before.FlushedBytes}, {&c.FlushErrors, before.FlushErrors},
		{&c.ThrottledWrites, before.ThrottledWrites}, {&c.ReadAheadBytes, before.ReadAheadBytes},
	} {
		*f.value = i.rate(*f.value, f.old)
	}
	c.Nodes = i.nodes(now.Nodes, before.Nodes)
	return &c
}

func (i interval) nodes(now, before []control.Node) []control.Node {
	old := byKey(before, func(n *control.Node) int { return n.Node })
	out := append([]control.Node(nil), now...)
	for j := range out {
		n, o := &out[j], old[out[j].Node]
		n.Evictions = i.rate(n.Evictions, o.Evictions)
		n.LocalBytes, n.RemoteBytes = i.rate(n.LocalBytes, o.LocalBytes), i.rate(n.RemoteBytes, o.RemoteBytes)
		n.Forwarded, n.ForwardedBytes = i.rate(n.Forwarded, o.Forwarded), i.rate(n.ForwardedBytes, o.ForwardedBytes)
		n.Hits, n.Misses = n.Hits-o.Hits, n.Misses-o.Misses // shown as a ratio
	}
	return out
}

func (i interval) volumes(now, before []control.Volume) []control.Volume {
	old := byKey(before, func(v *control.Volume) string { return v.Name })
	out := append([]control.Volume(nil), now...)
	for j := range out {
		v, o := &out[j], old[out[j].Name]
		v.IO = i.io(v.IO, o.IO)
		if v.Cache == nil {
			continue
		}
		c, was := *v.Cache, control.VolumeCache{}
		if o.Cache != nil {
			was = *o.Cache
		}
		c.HitRatio = control.Ratio(c.Hits-was.Hits, c.Misses-was.Misses)
		c.Hits, c.Misses = c.Hits-was.Hits, c.Misses-was.Misses
		v.Cache = &c
	}
	return out
}

// sessions that were opened since have grown from zero, also if they have got
// the TSIH of another.
func (i interval) sessions(now, before []control.Session) []control.Session {
	type key struct {
		tsih   int
		opened int64
	}
	keyOf := func(n *control.Session) key { return key{n.TSIH, n.Connected.UnixNano()} }
	old := byKey(before, keyOf)
	out := append([]control.Session(nil), now...)
	for j := range out {
		n, o := &out[j], old[keyOf(&out[j])]
		n.LUNs = append([]control.SessionLUN(nil), n.LUNs...)
		for k := range n.LUNs {
			was := control.IO{}
			if k < len(o.LUNs) {
				was = o.LUNs[k].IO
			}
			n.LUNs[k].IO = i.io(n.LUNs[k].IO, was)
		}
	}
	return out
}

func byKey[K comparable, T any](list []T, key func(*T) K) map[K]T {
	m := make(map[K]T, len(list))
	for i := range list {
		m[key(&list[i])] = list[i]
	}
	return m
}
