package node

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/ownership"
)

// word is what nodes say with each beat of their links.
type word struct {
	Without []string         `json:"without,omitempty"` // volumes that are the node's and that it does not serve
	Stores  []string         `json:"stores"`            // those of its volumes that answer it
	Hears   map[string]voice `json:"hears,omitempty"`   // other nodes
}

// voice is a node that another one hears.
type voice struct {
	Incarnation string        `json:"incarnation"`
	Age         time.Duration `json:"age"` // since it was heard
	Without     []string      `json:"without,omitempty"`
}

// ears read what other nodes say.
type ears struct {
	links *link.Links // nil: there are none
	mu    sync.Mutex
	last  map[string]said
}

// said is the last word of a node.
type said struct {
	link.Heard
	word
}

// all returns the last words of all nodes, also of those that are not heard any more. Each is read
// once.
func (e *ears) all() map[string]said {
	if e.links == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := map[string]said{}
	for name, h := range e.links.All() {
		s := e.last[name]
		if !s.At.Equal(h.At) {
			s = said{Heard: h}
			_ = json.Unmarshal(h.Says, &s.word) // one of another version is heard all the same
		}
		now[name] = s
	}
	e.last = now
	return now
}

// Says is what this node is to say with each beat of its links (link.Config.Says).
func (n *Node) Says() []byte {
	w := *n.says.Load()
	w.Hears = map[string]voice{}
	for name, s := range n.ears.all() {
		if !s.At.IsZero() {
			w.Hears[name] = voice{s.Incarnation, time.Since(s.At), s.Without}
		}
	}
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}

// linked are the nodes that are heard without the state, by this one or by one that this one
// hears.
func (n *Node) linked() map[string]ownership.Linked {
	out, now, all := map[string]ownership.Linked{}, time.Now(), n.ears.all()
	for name, s := range all {
		if !s.At.IsZero() {
			out[name] = ownership.Linked{Incarnation: s.Incarnation, Until: s.At.Add(n.config.Suspect), Without: s.Without, Stores: s.Stores}
		}
	}
	for _, s := range all {
		for other, v := range s.Hears {
			until := s.At.Add(n.config.Suspect - v.Age)
			known := now.Before(out[other].Until) || other == n.config.Node
			if !known && until.After(out[other].Until) && s.At.After(all[other].Lost) { // who spoke before did not know of its death
				out[other] = ownership.Linked{Incarnation: v.Incarnation, Until: until, Without: v.Without}
			}
		}
	}
	return out
}

// mostSaid is how many volumes and stores are named in a beat at most: it has a bound. Nodes that
// are not named the rest do as without links.
const mostSaid = 200

// say notes what is so of this node's volumes, for its next beat.
func (n *Node) say() {
	w := word{Stores: []string{}}
	silent := map[string]bool{}
	for name, v := range n.volumes {
		if v.machine.Without() {
			w.Without = append(w.Without, name)
		}
		store, since := v.Silent()
		silent[store] = silent[store] || !since.IsZero()
	}
	for store, is := range silent {
		if store != "" && !is {
			w.Stores = append(w.Stores, store)
		}
	}
	slices.Sort(w.Without)
	slices.Sort(w.Stores)
	w.Without, w.Stores = w.Without[:min(len(w.Without), mostSaid)], w.Stores[:min(len(w.Stores), mostSaid)]
	n.says.Store(&w)
}

// Hear has it looked at what links say. It does not wait: link.Links.Watch may call it.
func (n *Node) Hear(string) {
	go n.post(func() { n.all = true })
}
