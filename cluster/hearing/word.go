package hearing

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"lunar/cluster/link"
)

// Word is what nodes say with each beat of their links.
type Word struct {
	Without []string         `json:"without,omitempty"` // volumes that are the node's and that it does not serve
	Stores  []string         `json:"stores,omitempty"`  // those of its volumes that answer it
	Silent  []string         `json:"silent,omitempty"`  // those that do not
	Hears   map[string]Voice `json:"hears,omitempty"`   // other nodes
	// Lease is how long the node's lease still lasts, and Renewed how long ago the state has
	// renewed it: for people alone.
	Lease   time.Duration `json:"lease,omitempty"`
	Renewed time.Duration `json:"renewed,omitempty"`

	Until, Answered time.Time `json:"-"` // what these two are made from where the word is said
}

// Voice is a node that another one hears.
type Voice struct {
	Incarnation string        `json:"incarnation"`
	Age         time.Duration `json:"age"` // since it was heard
	Without     []string      `json:"without,omitempty"`
	Stores      []string      `json:"stores,omitempty"`
	Silent      []string      `json:"silent,omitempty"`
}

// most is how many volumes and stores a word names at most: a beat has a bound. Nodes that are not
// named the rest do as without links.
const most = 200

// NewWord is one of a node that has some volumes and does not serve them, and whose volumes are in
// some stores.
func NewWord(without []string, stores Stores) (w Word) {
	w.Without = named(without)
	w.Stores, w.Silent = stores.lists()
	return w
}

// named are names as a word has them.
func named(all []string) []string {
	slices.Sort(all)
	return all[:min(len(all), most)]
}

// Stores is which stores of a node's volumes answer it.
type Stores map[string]answer

// answer is how a store answers for all of its volumes.
type answer struct {
	silent  bool // for one of them it does not
	unknown bool // for one of them it has not for a moment
}

// fresh is how long ago a store has to have answered for others to be told that it does.
const fresh = 3 * time.Second

// Note tells of a volume what node.Volume.Silent returns.
func (s Stores) Note(store string, silent, last time.Time) {
	if store == "" {
		return
	}
	was := s[store]
	s[store] = answer{was.silent || !silent.IsZero(), was.unknown || time.Since(last) > fresh}
}

// lists are the stores that answer, and those that do not.
func (s Stores) lists() (answering, silent []string) {
	for name, a := range s {
		switch {
		case a.silent:
			silent = append(silent, name)
		case !a.unknown:
			answering = append(answering, name)
		}
	}
	return named(answering), named(silent)
}

// encode is a word as it is said. Where that would have no place in a beat, it is left out what is
// so of other nodes, which they say themselves, and then what this one does not, and its stores:
// who hears less leaves volumes with their owners.
func (w Word) encode() []byte {
	text := w.written()
	if len(text) > link.MaxBeat {
		w.Hears = maps.Clone(w.Hears)
		for name, v := range w.Hears {
			v.Without, v.Stores, v.Silent = nil, nil, nil
			w.Hears[name] = v
		}
		text = w.written()
	}
	if len(text) > link.MaxBeat {
		w.Without, w.Stores, w.Silent = nil, nil, nil
		text = w.written()
	}
	return text
}

func (w Word) written() []byte {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}
