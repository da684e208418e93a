package places

import (
	"iter"
	"maps"
	"net/netip"
	"time"
)

// Bounds say how many places there are, and from when on a holder may lose one.
type Bounds struct {
	Places     int
	PerHolder  int // a holder's share
	PerNetwork int // the share of a network of strangers

	// Patience, unless it is zero, says that places are to be given back soon. Of a
	// holder the oldest is lost first, and those that do not Progress before all
	// others. One that was kept for longer than this goes to whoever finds none.
	Patience time.Duration
}

// Table is who has which place.
type Table[K comparable] struct {
	held     map[K]place
	holders  map[Holder]int
	networks map[network]int
	taken    uint64
}

type place struct {
	Holder
	since    time.Time
	order    uint64 // of taking
	progress bool
}

type network struct {
	class  Class
	prefix netip.Prefix
}

func (h Holder) network() network { return network{h.Class, h.Network} }

// Len is how many places are taken.
func (t *Table[K]) Len() int { return len(t.held) }

// Held is how many places a holder has.
func (t *Table[K]) Held(h Holder) int { return t.holders[h] }

// Take gives the holder a place under the key, which has none. kept is how many
// places are there for others alone. If all the rest are taken, somebody may lose
// one to it, whose key is returned and has no place any more.
func (t *Table[K]) Take(key K, h Holder, b Bounds, kept int, now time.Time) (lost K, displaced, ok bool) {
	if len(t.held)+kept >= b.Places {
		if lost, displaced = t.loser(h, &b, now); !displaced {
			return lost, false, false
		}
		t.Leave(lost)
	}
	if t.held == nil {
		t.held, t.holders, t.networks = make(map[K]place), make(map[Holder]int), make(map[network]int)
	}
	t.taken++
	t.put(key, place{Holder: h, since: now, order: t.taken})
	return lost, displaced, true
}

// Keys are those that have places, in no order. The table must not change meanwhile.
func (t *Table[K]) Keys() iter.Seq[K] { return maps.Keys(t.held) }

// Progress says whether a place is being used for what it was taken for.
func (t *Table[K]) Progress(key K, yes bool) {
	if p, ok := t.held[key]; ok {
		p.progress = yes
		t.held[key] = p
	}
}

// Holder returns who has the place of a key, and whether it has one.
func (t *Table[K]) Holder(key K) (Holder, bool) {
	p, ok := t.held[key]
	return p.Holder, ok
}

// Pass lets a holder have the place of a key, if that has one, under another.
func (t *Table[K]) Pass(from, to K, h Holder) {
	p, ok := t.held[from]
	if !ok {
		return
	}
	t.Leave(from)
	p.Holder = h
	t.put(to, p)
}

func (t *Table[K]) put(key K, p place) {
	t.held[key] = p
	t.holders[p.Holder]++
	t.networks[p.network()]++
}

// Leave gives a place back. A key that has none is nothing to give back.
func (t *Table[K]) Leave(key K) {
	p, ok := t.held[key]
	if !ok {
		return
	}
	delete(t.held, key)
	decrease(t.holders, p.Holder)
	decrease(t.networks, p.network())
}

func decrease[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// loser chooses the place that goes to the holder. Who has had his share can only
// lose places of his own to himself, and a network that has had its share to
// itself.
func (t *Table[K]) loser(h Holder, b *Bounds, now time.Time) (key K, ok bool) {
	switch {
	case t.holders[h] >= b.PerHolder:
		if key, ok = t.of(h, b); ok && b.Patience > 0 && !t.held[key].progress {
			return key, true
		}
		return t.stale(b, now, func(p *place) bool { return p.Holder == h })
	case h.Class == Stranger && t.networks[h.network()] >= b.PerNetwork:
		if from, ok := t.largest(h.Class, h.Network, b.spared(t.holders[h])); ok {
			return t.of(from, b)
		}
		return t.stale(b, now, func(p *place) bool { return p.network() == h.network() })
	}
	for c := range h.Class {
		if from, ok := t.largest(c, netip.Prefix{}, 0); ok {
			return t.of(from, b)
		}
	}
	if from, ok := t.largest(h.Class, netip.Prefix{}, b.PerHolder); ok {
		return t.of(from, b)
	}
	if from, ok := t.largestNetwork(h.Class, b.PerNetwork); ok {
		member, _ := t.largest(h.Class, from, 0)
		return t.of(member, b)
	}
	return t.stale(b, now, func(p *place) bool { return p.Class == h.Class })
}

// spared is how many places another holder of a network keeps beside one that has
// mine: his share of those that are for long, as many of those that are not.
func (b *Bounds) spared(mine int) int {
	if b.Patience > 0 {
		return min(mine+1, b.PerHolder)
	}
	return b.PerHolder
}

// largest returns the holder of a class, and of a network unless it is the zero
// value, that has most places, if these are more than a number.
func (t *Table[K]) largest(c Class, in netip.Prefix, than int) (most Holder, ok bool) {
	for h, n := range t.holders {
		if h.Class != c || in.IsValid() && h.Network != in {
			continue
		}
		if n > than || ok && n == than && h.Name < most.Name {
			most, than, ok = h, n, true
		}
	}
	return most, ok
}

func (t *Table[K]) largestNetwork(c Class, than int) (most netip.Prefix, ok bool) {
	for w, n := range t.networks {
		if w.class == c && c == Stranger && (n > than || ok && n == than && w.prefix.Addr().Less(most.Addr())) {
			most, than, ok = w.prefix, n, true
		}
	}
	return most, ok
}

// of returns the place that a holder loses first.
func (t *Table[K]) of(h Holder, b *Bounds) (key K, ok bool) {
	var first place
	for k, p := range t.held {
		if p.Holder == h && (!ok || b.before(&p, &first)) {
			key, first, ok = k, p, true
		}
	}
	return key, ok
}

// before reports whether p is lost before o.
func (b *Bounds) before(p, o *place) bool {
	if b.Patience > 0 {
		return p.progress == o.progress && p.order < o.order || !p.progress && o.progress
	}
	return p.order > o.order
}

// stale returns the oldest of some places if it was kept for longer than patience
// allows.
func (t *Table[K]) stale(b *Bounds, now time.Time, which func(*place) bool) (key K, ok bool) {
	var oldest place
	for k, p := range t.held {
		if which(&p) && (!ok || p.order < oldest.order) {
			key, oldest, ok = k, p, true
		}
	}
	if !ok || b.Patience == 0 || now.Sub(oldest.since) < b.Patience {
		var none K
		return none, false
	}
	return key, true
}

// Fair reports whether somebody who holds mine of what cannot be taken back may
// have more of it: while more is free than he has. The first may have half, who
// comes next half of the rest, and so on, so that there is something left for one
// who has nothing yet.
func Fair(mine, used, all int) bool { return mine < all-used }
