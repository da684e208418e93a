package places

import (
	"iter"
	"maps"
	"net/netip"
	"time"
)

// Bounds are the number of places, and the numbers from which a holder may lose one.
type Bounds struct {
	Places     int
	PerHolder  int // a holder's share
	PerNetwork int // the share of a network of strangers

	// Patience, unless it is zero, says that places are to be given back soon. Of a
	// holder the oldest is lost first, and those that do not Progress before all
	// others. A place that was held for longer than this goes to whoever finds none.
	Patience time.Duration
}

// Table records who has which place.
type Table[K comparable] struct {
	places   map[K]place
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

// Len returns how many places are taken.
func (t *Table[K]) Len() int { return len(t.places) }

// Count returns how many places a holder has.
func (t *Table[K]) Count(h Holder) int { return t.holders[h] }

// Take gives the holder a place under the key, which has none. reserved is the number
// of places that only others may have. If all the rest are taken, another holder may
// lose one: its key is returned, and has no place any more.
func (t *Table[K]) Take(key K, h Holder, b Bounds, reserved int, now time.Time) (lost K, displaced, ok bool) {
	if lost, displaced, ok = t.room(h, &b, reserved, now); !ok {
		return lost, false, false
	}
	if displaced {
		t.Release(lost)
	}
	if t.places == nil {
		t.places, t.holders, t.networks = make(map[K]place), make(map[Holder]int), make(map[network]int)
	}
	t.taken++
	t.put(key, place{Holder: h, since: now, order: t.taken})
	return lost, displaced, true
}

// Room reports whether Take would find a place.
func (t *Table[K]) Room(h Holder, b Bounds, reserved int, now time.Time) bool {
	_, _, ok := t.room(h, &b, reserved, now)
	return ok
}

// room looks for a place, and for who has to lose it.
func (t *Table[K]) room(h Holder, b *Bounds, reserved int, now time.Time) (lost K, displaced, ok bool) {
	if len(t.places)+reserved < b.Places {
		return lost, false, true
	}
	lost, displaced = t.loser(h, b, now)
	return lost, displaced, displaced
}

// Keys are those that have places, in no order. The table must not change meanwhile.
func (t *Table[K]) Keys() iter.Seq[K] { return maps.Keys(t.places) }

// Progress records whether a place is being used for its purpose.
func (t *Table[K]) Progress(key K, yes bool) {
	if p, ok := t.places[key]; ok {
		p.progress = yes
		t.places[key] = p
	}
}

// Holder returns the holder of a key's place, and whether it has one.
func (t *Table[K]) Holder(key K) (Holder, bool) {
	p, ok := t.places[key]
	return p.Holder, ok
}

// Pass moves the place of one key, if it has one, to another key and holder.
func (t *Table[K]) Pass(from, to K, h Holder) {
	p, ok := t.places[from]
	if !ok {
		return
	}
	t.Release(from)
	p.Holder = h
	t.put(to, p)
}

func (t *Table[K]) put(key K, p place) {
	t.places[key] = p
	t.holders[p.Holder]++
	t.networks[p.network()]++
}

// Release gives a place back. It does nothing for a key without one.
func (t *Table[K]) Release(key K) {
	p, ok := t.places[key]
	if !ok {
		return
	}
	delete(t.places, key)
	decrease(t.holders, p.Holder)
	decrease(t.networks, p.network())
}

func decrease[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// loser chooses the place that goes to the holder. A holder that has its share can
// only replace a place of its own, and a network that has its share one of its own.
func (t *Table[K]) loser(h Holder, b *Bounds, now time.Time) (key K, ok bool) {
	switch {
	case t.holders[h] >= b.PerHolder:
		if key, ok = t.of(h, b); ok && b.Patience > 0 && !t.places[key].progress {
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

// spared returns how many places another holder of a network keeps beside one that
// has mine: its share of lasting places, and as many as mine of the others.
func (b *Bounds) spared(mine int) int {
	if b.Patience > 0 {
		return min(mine+1, b.PerHolder)
	}
	return b.PerHolder
}

// largest returns the holder with most places, if they are more than a number: of the
// class, and of the network unless that is the zero value.
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
	for k, p := range t.places {
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

// stale returns the oldest of some places if it was held for longer than patience
// allows.
func (t *Table[K]) stale(b *Bounds, now time.Time, which func(*place) bool) (key K, ok bool) {
	var oldest place
	for k, p := range t.places {
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

// Fair reports whether a holder of mine units that cannot be taken back may have one
// more: while more units are free than it holds. So the first may have half, the next
// one half of the rest, and so on, and something is left for one that has none yet.
func Fair(mine, used, all int) bool { return mine < all-used }
