package latency

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Who is an initiator, as in Key.
type Who struct{ Initiator, User string }

// Totals are of all commands since the start, or since the initiator was seen first.
type Totals struct{ Count, Sum uint64 } // Sum in ns

// Volume is how long the commands of all initiators to a volume took.
type Volume struct {
	Name  string
	Total [Operations]Counts // since the volume was used first
	Last  [Operations]Counts // in the last interval
}

// Initiator is how long an initiator's commands took.
type Initiator struct {
	Who
	Total [Operations]Totals
	Last  [Operations]Counts
}

// Use is how long an initiator's commands to a volume took, in the last interval.
type Use struct {
	Key
	Last [Operations]*Counts // nil: none; not to be changed
}

// Report is what a Book has.
type Report struct {
	Interval   time.Duration // length of the last interval; 0: there was none yet
	Volumes    []*Volume     // by name
	Initiators []*Initiator  // by name; those that nobody knows by name are not among them
	Uses       []Use         // with commands in the last interval, by volume
	Replaced   uint64        // initiators that were forgotten for others
}

// Book adds up what the tables of all event threads have counted. Its memory is bounded
// by the tables' and by the number of initiators that it keeps. All methods may be called
// by any goroutine.
type Book struct {
	most int

	mu         sync.Mutex
	readings   map[*Slot]*[Operations]reading
	volumes    map[string]*[Operations]Counts
	initiators map[Who]*person
	uses       map[Key]*use
	turned     time.Time // when this interval began
	interval   time.Duration
	turns      uint64
	replaced   uint64
}

// person is an initiator.
type person struct {
	total  [Operations]Totals
	active uint64 // the turn in which there was something last
}

// use is an initiator's use of a volume; nil: nothing was counted.
type use struct{ now, last [Operations]*Counts }

// NewBook returns a Book that keeps so many initiators. Its first interval begins now.
func NewBook(most int, now time.Time) *Book {
	return &Book{
		most: most, turned: now, readings: make(map[*Slot]*[Operations]reading), volumes: make(map[string]*[Operations]Counts),
		initiators: make(map[Who]*person), uses: make(map[Key]*use),
	}
}

// Turn ends an interval and begins the next one. Counters wrap around, so it has to be
// called every few minutes at least.
func (b *Book) Turn(tables []*Table, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read(tables)
	for k, u := range b.uses {
		if u.last = u.now; u.last == ([Operations]*Counts{}) {
			delete(b.uses, k)
		}
		u.now = [Operations]*Counts{}
	}
	b.turned, b.interval = now, now.Sub(b.turned)
	b.turns++
}

// Forget gives up the volumes that are not kept.
func (b *Book) Forget(keep func(volume string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.volumes, func(name string, _ *[Operations]Counts) bool { return !keep(name) })
	maps.DeleteFunc(b.uses, func(k Key, _ *use) bool { return !keep(k.Volume) })
}

// read adds what the tables have counted since it was called last.
func (b *Book) read(tables []*Table) {
	shown := make(map[*Slot]bool)
	for _, t := range tables {
		for _, s := range t.Shown() {
			shown[s] = true
			b.readSlot(s)
		}
	}
	maps.DeleteFunc(b.readings, func(s *Slot, _ *[Operations]reading) bool { return !shown[s] })
}

func (b *Book) readSlot(s *Slot) {
	if s.taken.Load() {
		return
	}
	replaced := s.replaced.Load()
	before := b.readings[s]
	if before == nil {
		before = new([Operations]reading)
		b.readings[s] = before
	}
	for op := range s.By {
		var added Counts
		if before[op].since(&s.By[op], &added) {
			b.add(s.Key, op, &added)
		}
	}
	if replaced {
		s.taken.Store(true)
	}
}

// add adds what a slot has counted.
func (b *Book) add(k Key, op int, added *Counts) {
	v := b.volumes[k.Volume]
	if v == nil {
		v = new([Operations]Counts)
		b.volumes[k.Volume] = v
	}
	v[op].Merge(added)
	u := b.uses[k]
	if u == nil {
		u = &use{}
		b.uses[k] = u
	}
	if u.now[op] == nil {
		u.now[op] = &Counts{}
	}
	u.now[op].Merge(added)
	if k.Initiator == "" {
		return
	}
	p := b.person(Who{k.Initiator, k.User})
	p.active = b.turns
	p.total[op].Count += added.Count()
	p.total[op].Sum += added.Sum
}

// person is that of an initiator, in place of the least recently active if there are too
// many.
func (b *Book) person(w Who) *person {
	p := b.initiators[w]
	if p != nil {
		return p
	}
	if len(b.initiators) >= b.most {
		var oldest Who
		least := ^uint64(0)
		for o, p := range b.initiators {
			if p.active < least {
				oldest, least = o, p.active
			}
		}
		delete(b.initiators, oldest)
		b.replaced++
	}
	p = &person{}
	b.initiators[w] = p
	return p
}

// Report reads the tables, and tells all there is.
func (b *Book) Report(tables []*Table) Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read(tables)
	r := Report{Interval: b.interval, Replaced: b.replaced}
	for _, t := range tables {
		r.Replaced += t.Replaced()
	}
	volumes, initiators := make(map[string]*Volume, len(b.volumes)), make(map[Who]*Initiator, len(b.initiators))
	for name, total := range b.volumes {
		volumes[name] = &Volume{Name: name, Total: *total}
	}
	for w, p := range b.initiators {
		initiators[w] = &Initiator{Who: w, Total: p.total}
	}
	for k, u := range b.uses {
		r.use(k, u, volumes[k.Volume], initiators[Who{k.Initiator, k.User}])
	}
	for _, v := range volumes {
		r.Volumes = append(r.Volumes, v)
	}
	for _, i := range initiators {
		r.Initiators = append(r.Initiators, i)
	}
	slices.SortFunc(r.Volumes, func(a, b *Volume) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Initiators, func(a, b *Initiator) int { return a.Who.compare(b.Who) })
	slices.SortFunc(r.Uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Volume, b.Volume), Who{a.Initiator, a.User}.compare(Who{b.Initiator, b.User}))
	})
	return r
}

func (w Who) compare(o Who) int {
	return cmp.Or(cmp.Compare(w.Initiator, o.Initiator), cmp.Compare(w.User, o.User))
}

// use adds what was done in the last interval to the report. Either may be nil.
func (r *Report) use(k Key, u *use, v *Volume, i *Initiator) {
	told := Use{Key: k}
	any := false
	for op, last := range u.last {
		if last == nil {
			continue
		}
		any = true
		told.Last[op] = last
		if v != nil {
			v.Last[op].Merge(last)
		}
		if i != nil {
			i.Last[op].Merge(last)
		}
	}
	if any {
		r.Uses = append(r.Uses, told)
	}
}
