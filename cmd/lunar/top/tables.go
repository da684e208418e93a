package top

import (
	"fmt"

	"lunar/cmd/lunar/listing"
	"lunar/control"
)

// quantile is the longest time of an initiator's or volume's operations that of picks; nil:
// there were none.
func quantile(recent []control.OperationQuantile, operation string, of func(*control.OperationQuantile) float64) any {
	most := -1.
	for i := range recent {
		if operation == "" || recent[i].Operation == operation {
			most = max(most, of(&recent[i]))
		}
	}
	if most < 0 {
		return nil
	}
	return listing.Seconds(most)
}

func p50(q *control.OperationQuantile) float64 { return q.P50 }
func p99(q *control.OperationQuantile) float64 { return q.P99 }

// some is a value that is shown only where there is something.
func some(there bool, v any) any {
	if !there {
		return nil
	}
	return v
}

var initiatorTable = listing.Table[control.SeenInitiator]{
	{Name: "initiator", Of: func(i *control.SeenInitiator) any { return i.Initiator }},
	{Name: "iops", Of: func(i *control.SeenInitiator) any { return perSecond(i.IOPS) }},
	{Name: "read", Of: func(i *control.SeenInitiator) any { return bytesPerSecond(i.ReadBytes) }},
	{Name: "written", Of: func(i *control.SeenInitiator) any { return bytesPerSecond(i.WrittenBytes) }},
	{Name: "p99", Of: func(i *control.SeenInitiator) any { return quantile(i.Recent, "", p99) }},
	{Name: "p50", Of: func(i *control.SeenInitiator) any { return quantile(i.Recent, "", p50) }},
	{Name: "bound-by", Of: func(i *control.SeenInitiator) any { return bounds[i.Bound] }},
	{Name: "promise", Of: func(i *control.SeenInitiator) any { return some(i.Promise != "none", i.Promise) }},
	{Name: "promised", Of: func(i *control.SeenInitiator) any { return some(i.Reserved > 0, tokens(i.Reserved)) }},
	{Name: "received", Of: func(i *control.SeenInitiator) any {
		return some(len(i.Rules) > 0 || i.Received > 0, tokens(i.Received))
	}},
	{Name: "held", Of: func(i *control.SeenInitiator) any { return some(i.Throttled > 0, wholePercent(i.Throttled)) }},
	{Name: "under-way", Of: func(i *control.SeenInitiator) any { return fmt.Sprintf("%d/%d", i.InFlight, i.Window) }},
}

// bounds are what a rate ends at, in words.
var bounds = map[string]string{
	"idle": "idle", "depth": "its own depth", "window": "command window", "limit": "limit", "thread": "event thread", "device": "device", "cache": "cache", "memory": "memory", "network": "network",
}

var useTable = listing.Table[control.SeenUse]{
	{Name: "initiator", Of: func(u *control.SeenUse) any { return u.Initiator }},
	{Name: "volume", Of: func(u *control.SeenUse) any { return u.Volume }},
	{Name: "iops", Of: func(u *control.SeenUse) any { return perSecond(u.IOPS) }},
	{Name: "read", Of: func(u *control.SeenUse) any { return bytesPerSecond(u.ReadBytes) }},
	{Name: "written", Of: func(u *control.SeenUse) any { return bytesPerSecond(u.WrittenBytes) }},
	{Name: "read-p99", Of: func(u *control.SeenUse) any { return quantile(u.Recent, "read", p99) }},
	{Name: "write-p99", Of: func(u *control.SeenUse) any { return quantile(u.Recent, "write", p99) }},
	{Name: "p50", Of: func(u *control.SeenUse) any { return quantile(u.Recent, "", p50) }},
	{Name: "held", Of: func(u *control.SeenUse) any { return some(u.Throttled > 0, wholePercent(u.Throttled)) }},
	{Name: "waiting", Of: func(u *control.SeenUse) any { return some(u.Waiting > 0, u.Waiting) }},
	{Name: "rules", Of: func(u *control.SeenUse) any { return u.Rules }},
}

var volumeTable = listing.Table[control.SeenVolume]{
	{Name: "volume", Of: func(v *control.SeenVolume) any { return v.Volume }},
	{Name: "state", Of: func(v *control.SeenVolume) any { return stateOf(v) }},
	{Name: "iops", Of: func(v *control.SeenVolume) any { return perSecond(v.IOPS) }},
	{Name: "read", Of: func(v *control.SeenVolume) any { return bytesPerSecond(v.ReadBytes) }},
	{Name: "written", Of: func(v *control.SeenVolume) any { return bytesPerSecond(v.WrittenBytes) }},
	{Name: "read-p99", Of: func(v *control.SeenVolume) any { return quantile(v.Recent, "read", p99) }},
	{Name: "write-p99", Of: func(v *control.SeenVolume) any { return quantile(v.Recent, "write", p99) }},
	{Name: "p50", Of: func(v *control.SeenVolume) any { return quantile(v.Recent, "", p50) }},
	{Name: "hits", Of: func(v *control.SeenVolume) any { return hits(v.HitRatio) }},
	{Name: "dirty", Of: func(v *control.SeenVolume) any { return some(v.Dirty > 0, listing.Bytes(v.Dirty)) }},
	{Name: "size", Of: func(v *control.SeenVolume) any { return listing.Bytes(v.Size) }},
	{Name: "device", Of: func(v *control.SeenVolume) any { return v.Device }},
	{Name: "snapshots", Of: func(v *control.SeenVolume) any { return snapshotsOf(v.Snapshots) }},
}

// snapshotsOf is how many there are, marked if the schedule could not be kept.
func snapshotsOf(s *control.VolumeSnapshots) any {
	switch {
	case s == nil:
		return nil
	case s.Failed != "":
		return fmt.Sprintf("%d, FAILED", s.Count)
	}
	return s.Count
}

func hits(ratio *float64) any {
	if ratio == nil {
		return nil
	}
	return wholePercent(*ratio)
}

func stateOf(v *control.SeenVolume) string {
	switch {
	case v.Failing:
		return "NOT WRITTEN"
	case v.Frozen:
		return "frozen"
	}
	return v.State
}

// curveWidth is how many seconds of a promise are drawn.
const curveWidth = 30

var promiseTable = listing.Table[control.SeenPromise]{
	{Name: "rule", Of: func(p *control.SeenPromise) any { return p.Rule }},
	{Name: "promised-to", Of: func(p *control.SeenPromise) any { return p.Level + " " + p.Name }},
	{Name: "state", Of: func(p *control.SeenPromise) any { return p.State }},
	{Name: "promised", Of: func(p *control.SeenPromise) any { return tokens(p.Reservation) }},
	{Name: "asked", Of: func(p *control.SeenPromise) any { return tokens(p.Asked) }},
	{Name: "got", Of: func(p *control.SeenPromise) any { return tokens(p.Served) }},
	{Name: "missed/60s", Of: func(p *control.SeenPromise) any { return p.MissedOf60 }},
	{Name: "last-seconds", Of: func(p *control.SeenPromise) any { return curve(p.History, p.Reservation, curveWidth) }},
}

var threadTable = listing.Table[control.SeenThread]{
	{Name: "event-thread", Of: func(t *control.SeenThread) any { return t.Name }},
	{Name: "busy", Of: func(t *control.SeenThread) any { return wholePercent(t.Busy) }},
	{Name: "load", Of: func(t *control.SeenThread) any { return bar(t.Busy, 20) }},
	{Name: "no-cpu", Of: func(t *control.SeenThread) any { return wholePercent(t.Waited) }},
	{Name: "connections", Of: func(t *control.SeenThread) any { return t.Connections }},
	{Name: "cpu", Of: func(t *control.SeenThread) any { return some(t.CPU >= 0, t.CPU) }},
	{Name: "node", Of: func(t *control.SeenThread) any { return some(t.Node >= 0, t.Node) }},
	{Name: "buffers", Of: func(t *control.SeenThread) any { return wholePercent(t.Buffers) }},
	{Name: "can-do", Of: func(t *control.SeenThread) any { return some(t.Tokens > 0, tokens(t.Tokens)) }},
}

var deviceTable = listing.Table[control.SeenDevice]{
	{Name: "device", Of: func(d *control.SeenDevice) any { return d.Name }},
	{Name: "full", Of: func(d *control.SeenDevice) any { return d.Full }},
	{Name: "iops", Of: func(d *control.SeenDevice) any { return perSecond(d.IOPS) }},
	{Name: "read", Of: func(d *control.SeenDevice) any { return bytesPerSecond(d.ReadBytes) }},
	{Name: "written", Of: func(d *control.SeenDevice) any { return bytesPerSecond(d.WrittenBytes) }},
	{Name: "can-do", Of: func(d *control.SeenDevice) any { return some(d.Tokens > 0, tokens(d.Tokens)) }},
	{Name: "reserved", Of: func(d *control.SeenDevice) any { return some(d.Reserved > 0, tokens(d.Reserved)) }},
	{Name: "volumes", Of: func(d *control.SeenDevice) any { return d.Volumes }},
}

var nodeTable = listing.Table[control.SeenNode]{
	{Name: "node", Of: func(n *control.SeenNode) any { return n.Node }},
	{Name: "used", Of: func(n *control.SeenNode) any { return listing.Bytes(n.Used) }},
	{Name: "size", Of: func(n *control.SeenNode) any { return listing.Bytes(n.Size) }},
	{Name: "dirty", Of: func(n *control.SeenNode) any { return listing.Bytes(n.Dirty) }},
	{Name: "hits", Of: func(n *control.SeenNode) any { return hits(n.HitRatio) }},
	{Name: "local", Of: func(n *control.SeenNode) any { return bytesPerSecond(n.Local) }},
	{Name: "remote", Of: func(n *control.SeenNode) any { return bytesPerSecond(n.Remote) }},
	{Name: "forwarded", Of: func(n *control.SeenNode) any { return bytesPerSecond(n.Forwarded) }},
}

var ruleTable = listing.Table[control.SeenRule]{
	{Name: "rule", Of: func(r *control.SeenRule) any { return r.Name }},
	{Name: "says", Of: func(r *control.SeenRule) any { return r.Text }},
}
