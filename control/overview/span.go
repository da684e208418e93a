package overview

import (
	"cmp"
	"slices"
	"time"

	"lunar/control"
)

// Snapshot is what a server tells at a moment.
type Snapshot struct {
	At        time.Time
	Status    control.Status
	Latencies control.Latencies
	QoS       control.QoS
	Events    []control.Event // the last ones, the newest last
}

// least is the shortest time between two snapshots that rates are taken of.
const least = time.Millisecond

// span is two snapshots, and what is looked up in them.
type span struct {
	now, before *Snapshot
	seconds     float64
	out         control.Overview

	devices map[string]string         // of volumes, as far as the scheduler has them
	volumes map[nexus]string          // behind logical units
	cached  map[string]control.Volume // before, by name
	uses    map[use]*control.SeenUse
	flows   map[nexus]*flow
	ruled   map[ruling][]*flow // by the rules that apply to them
	lately  map[ruling]bool    // promises that were missed in the last seconds; rule and name
	nets    map[string]*network
	crowds  map[string]bool // volumes in which many commands wait, where nobody measures devices
	known   map[string]*control.SeenInitiator
}

// nexus is an initiator's way to a logical unit.
type nexus struct {
	initiator, target string
	lun               uint64
}

type use struct{ initiator, volume string }

// ruling is a rule at a level, or a promise by rule and name.
type ruling struct{ rule, of string }

// network is what connections of known classes get of what their network device leads to.
type network struct {
	carries, rate int64 // bytes per second
	initiators    []string
}

// flow is what the scheduler did between the two snapshots for a use of a logical unit.
type flow struct {
	*control.Flow
	asked, received float64 // tokens per second
	held            float64 // share of the time
	by              string  // rule
}

func newSpan(now, before *Snapshot) *span {
	s := &span{
		now: now, before: before, seconds: max(now.At.Sub(before.At), least).Seconds(),
		devices: map[string]string{}, volumes: map[nexus]string{}, cached: map[string]control.Volume{},
		uses: map[use]*control.SeenUse{}, flows: map[nexus]*flow{}, ruled: map[ruling][]*flow{}, lately: map[ruling]bool{}, known: map[string]*control.SeenInitiator{},
	}
	for _, d := range now.QoS.Capacity.Devices {
		for _, v := range d.Volumes {
			s.devices[v] = d.Name
		}
	}
	for _, v := range before.Status.Volumes {
		s.cached[v.Name] = v
	}
	return s
}

func (s *span) initiator(name string) *control.SeenInitiator {
	who := s.known[name]
	if who == nil {
		who = &control.SeenInitiator{Initiator: name, Addresses: []string{}, Threads: []string{}, Volumes: []string{}, Recent: []control.OperationQuantile{}, Rules: []string{}, Bound: "idle", Promise: "none"}
		s.known[name] = who
	}
	return who
}

func (s *span) use(initiator, volume string) *control.SeenUse {
	k := use{initiator, volume}
	u := s.uses[k]
	if u == nil {
		u = &control.SeenUse{Initiator: initiator, Volume: volume, Recent: []control.OperationQuantile{}, Rules: []string{}}
		s.uses[k] = u
	}
	return u
}

// share is a part of a whole, from 0 to 1.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, max(0, part/whole))
}

// filled is a list that JSON does not have as null.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// perSecond is by how much a counter grew in a second; one that has begun anew has grown
// from zero.
func (s *span) perSecond(now, before uint64) float64 {
	if now < before {
		before = 0
	}
	return float64(now-before) / s.seconds
}

func (s *span) rates(now, before *control.IO) control.Rates {
	r := control.Rates{
		Reads: s.perSecond(now.Reads, before.Reads), Writes: s.perSecond(now.Writes, before.Writes),
		ReadBytes: s.perSecond(now.ReadBytes, before.ReadBytes), WrittenBytes: s.perSecond(now.WrittenBytes, before.WrittenBytes),
	}
	r.IOPS = r.Reads + r.Writes + s.perSecond(now.Others, before.Others)
	return r
}

func add(to *control.Rates, r control.Rates) {
	to.IOPS += r.IOPS
	to.Reads += r.Reads
	to.Writes += r.Writes
	to.ReadBytes += r.ReadBytes
	to.WrittenBytes += r.WrittenBytes
}

// busiest compares by commands, then by data.
func busiest(a, b *control.Rates) int {
	return cmp.Or(cmp.Compare(b.IOPS, a.IOPS), cmp.Compare(b.ReadBytes+b.WrittenBytes, a.ReadBytes+a.WrittenBytes))
}

// hitRatio is nil if nothing was looked for.
func (s *span) hitRatio(hits, misses float64) *float64 {
	if hits+misses == 0 {
		return nil
	}
	ratio := hits / (hits + misses)
	return &ratio
}

// noted adds a name to a list that has each once, in order.
func noted(list []string, name string) []string {
	at, found := slices.BinarySearch(list, name)
	if found || name == "" {
		return list
	}
	return slices.Insert(list, at, name)
}
