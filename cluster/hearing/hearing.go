// Package hearing is what nodes of a cluster say with the beats of their links, and who is heard by
// that: by this node, or by one that this node hears.
package hearing

import (
	"encoding/json"
	"sync"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/ownership"
)

// Ears read what other nodes say. Methods may be called by any number of goroutines.
type Ears struct {
	links *link.Links
	self  string
	age   time.Duration
	mu    sync.Mutex
	last  map[string]Said
}

// New returns those of the node self, to which what was heard counts for some time; nil: it has no
// links.
func New(links *link.Links, self string, age time.Duration) *Ears {
	return &Ears{links: links, self: self, age: age}
}

// Said is the last word of a node.
type Said struct {
	link.Heard
	Word
}

// All returns the last words of all nodes, also of those that are not heard any more. Each is read
// once.
func (e *Ears) All() map[string]Said {
	if e.links == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := map[string]Said{}
	for name, h := range e.links.All() {
		s := e.last[name]
		if !s.At.Equal(h.At) {
			s = Said{Heard: h}
			_ = json.Unmarshal(h.Says, &s.Word) // one of another version is heard all the same
		}
		now[name] = s
	}
	e.last = now
	return now
}

// Says is w with whom this node hears, as it is to be said with a beat (link.Config.Says).
func (e *Ears) Says(w Word) []byte {
	w.Hears = map[string]Voice{}
	if !w.Answered.IsZero() {
		w.Lease, w.Renewed = max(0, time.Until(w.Until)), max(0, time.Since(w.Answered))
	}
	for name, s := range e.All() {
		if !s.At.IsZero() {
			w.Hears[name] = Voice{s.Incarnation, time.Since(s.At), s.Without, s.Stores, s.Silent}
		}
	}
	return w.encode()
}

// Linked are the nodes that are heard without the state, by this one or by one that this one
// hears.
func (e *Ears) Linked() map[string]ownership.Linked {
	out, now, all := map[string]ownership.Linked{}, time.Now(), e.All()
	for name, s := range all {
		if !s.At.IsZero() {
			out[name] = ownership.Linked{Incarnation: s.Incarnation, Until: s.At.Add(e.age), Without: s.Without, Stores: s.Stores, Silent: s.Silent}
		}
	}
	for _, s := range all {
		for other, v := range s.Hears {
			until := s.At.Add(e.age - v.Age)
			known := now.Before(out[other].Until) || other == e.self
			if !known && until.After(out[other].Until) && s.At.After(all[other].Lost) { // who spoke before did not know of its death
				out[other] = ownership.Linked{Incarnation: v.Incarnation, Until: until, Without: v.Without, Stores: v.Stores, Silent: v.Silent}
			}
		}
	}
	return out
}
