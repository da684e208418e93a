package admin

import (
	"reflect"
	"strings"

	"lunar/control"
)

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

// rates replaces the counters of a struct of the status, which are those that the tag
// metric calls so, by rates.
func rates[T any](i interval, now *T, before T) {
	value, old := reflect.ValueOf(now).Elem(), reflect.ValueOf(before)
	for n := range value.NumField() {
		name := value.Type().Field(n).Tag.Get("metric")
		if f := value.Field(n); f.CanUint() && strings.HasSuffix(name, "_total") {
			f.SetUint(i.rate(f.Uint(), old.Field(n).Uint()))
		}
	}
}

// threads have the times of the interval, and rates.
func (i interval) threads(now, before []control.Thread) []control.Thread {
	old := byKey(before, func(t *control.Thread) string { return t.Name })
	out := append([]control.Thread(nil), now...)
	for j := range out {
		o := old[out[j].Name]
		rates(i, &out[j], o)
		out[j].BusySeconds -= o.BusySeconds
		out[j].RunSeconds -= o.RunSeconds
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
		rates(i, &out.Devices[j], old[out.Devices[j].Name])
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
	rates(i, &c, *before)
	c.Nodes = i.nodes(now.Nodes, before.Nodes)
	return &c
}

func (i interval) nodes(now, before []control.Node) []control.Node {
	old := byKey(before, func(n *control.Node) int { return n.Node })
	out := append([]control.Node(nil), now...)
	for j := range out {
		n, o := &out[j], old[out[j].Node]
		hits, misses := n.Hits-o.Hits, n.Misses-o.Misses // shown as a ratio
		rates(i, n, o)
		n.Hits, n.Misses = hits, misses
	}
	return out
}

func (i interval) volumes(now, before []control.Volume) []control.Volume {
	old := byKey(before, func(v *control.Volume) string { return v.Name })
	out := append([]control.Volume(nil), now...)
	for j := range out {
		v, o := &out[j], old[out[j].Name]
		rates(i, &v.IO, o.IO)
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
			rates(i, &n.LUNs[k].IO, was)
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
