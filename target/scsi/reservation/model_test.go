package reservation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is SPC-4 clause 5.13 word by word: a map of keys, a holder, a type, and
// what each nexus is to be told.
type model struct {
	keys       map[Nexus]uint64
	kind       Type
	holder     Nexus
	generation uint32
	told       map[Nexus][]Event
	aborted    map[Nexus]bool
}

func (m *model) allRegistrants() bool { return m.kind == 7 || m.kind == 8 }

func (m *model) registrantsOnly() bool { return m.kind == 5 || m.kind == 6 }

func (m *model) holds(n Nexus) bool {
	if m.kind == 0 {
		return false
	}
	if m.allRegistrants() {
		return m.keys[n] != 0
	}
	return m.holder == n
}

// rights is SPC-4 table 65's columns.
func (m *model) rights(n Nexus) Rights {
	registered := m.keys[n] != 0
	switch m.kind {
	case 1, 3:
		if m.holder == n {
			return All
		}
		if m.kind == 1 {
			return Read
		}
		return 0
	case 5, 7:
		if registered {
			return All
		}
		return Read
	case 6, 8:
		if registered {
			return All
		}
		return 0
	}
	return All
}

func (m *model) tell(from Nexus, e Event, to ...Nexus) {
	for _, n := range to {
		if n != from {
			m.told[n] = append(m.told[n], e)
		}
	}
}

func (m *model) registered() []Nexus { return slices.Collect(maps.Keys(m.keys)) }

// drop ends a registration, and the reservation with it if it depends on it.
func (m *model) drop(from, n Nexus) {
	held := m.kind != 0 && !m.allRegistrants() && m.holder == n
	delete(m.keys, n)
	if held {
		if m.registrantsOnly() {
			m.tell(from, ReservationsReleased, m.registered()...)
		}
		m.kind = 0
	}
	if m.allRegistrants() && len(m.keys) == 0 {
		m.kind = 0
	}
}

// apply returns whether the request has succeeded.
func (m *model) apply(r *Request) bool {
	if r.Action != Register && r.Action != RegisterAndIgnoreExistingKey && (m.keys[r.From] == 0 || m.keys[r.From] != r.Key) {
		return false
	}
	switch r.Action {
	case Register, RegisterAndIgnoreExistingKey:
		return m.register(r)
	case Reserve:
		if m.kind != 0 {
			return m.holds(r.From) && m.kind == r.Type
		}
		m.kind, m.holder = r.Type, r.From
	case Release:
		switch {
		case !m.holds(r.From):
		case r.Type != m.kind:
			return false
		default:
			if m.registrantsOnly() || m.allRegistrants() {
				m.tell(r.From, ReservationsReleased, m.registered()...)
			}
			m.kind = 0
		}
	case Clear:
		m.generation++
		m.tell(r.From, ReservationsPreempted, m.registered()...)
		m.keys, m.kind = map[Nexus]uint64{}, 0
	case RegisterAndMove:
		if !m.holds(r.From) || m.allRegistrants() || r.ServiceKey == 0 || r.To == r.From {
			return false
		}
		m.generation++
		m.keys[r.To], m.holder = r.ServiceKey, r.To
		if r.Unregister {
			delete(m.keys, r.From)
		}
	default:
		return m.preempt(r)
	}
	return true
}

func (m *model) register(r *Request) bool {
	old := m.keys[r.From]
	if r.Action == Register && old != r.Key {
		return false
	}
	if old == 0 && r.ServiceKey == 0 {
		return true
	}
	m.generation++
	if r.ServiceKey == 0 {
		m.drop(r.From, r.From)
	} else {
		m.keys[r.From] = r.ServiceKey
	}
	return true
}

// preempt is figure 9 of SPC-4.
func (m *model) preempt(r *Request) bool {
	takes := m.kind != 0 && (m.allRegistrants() && r.ServiceKey == 0 || !m.allRegistrants() && r.ServiceKey == m.keys[m.holder])
	if r.ServiceKey == 0 && !takes {
		return false
	}
	var gone []Nexus
	for n, key := range m.keys {
		if (key == r.ServiceKey || takes && r.ServiceKey == 0) && !(takes && n == r.From) {
			gone = append(gone, n)
		}
	}
	if !takes && len(gone) == 0 {
		return false
	}
	m.generation++
	before := m.kind
	for _, n := range gone {
		delete(m.keys, n)
		m.tell(r.From, RegistrationsPreempted, n)
		if r.Action == PreemptAndAbort {
			m.aborted[n] = true
		}
	}
	if takes {
		m.kind, m.holder = r.Type, r.From
		if before != r.Type {
			m.tell(r.From, ReservationsReleased, m.registered()...)
		}
	}
	if m.allRegistrants() && len(m.keys) == 0 {
		m.kind = 0
	}
	return true
}

// drawn is a random request of one of a few nexuses with one of a few keys.
func drawn(rng *rand.Rand, s *State, nexuses []Nexus) *Request {
	r := &Request{
		Action: Action(rng.IntN(8)), From: nexuses[rng.IntN(len(nexuses))], To: nexuses[rng.IntN(len(nexuses))],
		Type: []Type{1, 3, 5, 6, 7, 8}[rng.IntN(6)], ServiceKey: uint64(rng.IntN(4)), Unregister: rng.IntN(2) == 0,
	}
	r.Key = s.KeyOf(r.From)
	if rng.IntN(10) == 0 {
		r.Key = uint64(rng.IntN(4))
	}
	if r.Action == Release && s.Type() != 0 && rng.IntN(4) > 0 {
		r.Type = s.Type()
	}
	if r.Action == Clear && rng.IntN(4) > 0 {
		r.Action = Register
	}
	return r
}

// TestAgainstModel: long random conversations of a few nexuses.
func TestAgainstModel(t *testing.T) {
	nexuses := make([]Nexus, 5)
	for i := range nexuses {
		nexuses[i] = Nexus{fmt.Sprint("i", i/2), "t", uint16(1 + i%2)}
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, m := new(State), &model{keys: map[Nexus]uint64{}}
		for step := range 120 {
			r := drawn(rng, s, nexuses)
			m.told, m.aborted = map[Nexus][]Event{}, map[Nexus]bool{}
			before := fmt.Sprintf("%+v", *s)
			change, refusal := s.Apply(r)
			if fmt.Sprintf("%+v", *s) != before {
				t.Fatalf("seed %d step %d: %+v changed the state that it was applied to", seed, step, r)
			}
			if ok := m.apply(r); ok != (refusal == nil) {
				t.Fatalf("seed %d step %d: %+v on %s: refusal %+v, the model says %v", seed, step, r, before, refusal, ok)
			}
			if refusal == nil {
				s = change.Next
			}
			agree(t, s, m, &change, nexuses)
			if t.Failed() {
				t.Fatalf("seed %d step %d: %+v on %s", seed, step, r, before)
			}
		}
	}
}

func agree(t *testing.T, s *State, m *model, c *Change, nexuses []Nexus) {
	t.Helper()
	if s.Type() != m.kind || s.Generation() != m.generation || len(s.Registrations()) != len(m.keys) {
		t.Errorf("type %v, generation %d, registrations %v; the model has %+v", s.Type(), s.Generation(), s.Registrations(), m)
	}
	told, aborted := map[Nexus][]Event{}, map[Nexus]bool{}
	for _, n := range c.Notices {
		told[n.Nexus] = append(told[n.Nexus], n.Event)
	}
	for _, n := range c.Abort {
		aborted[n] = true
	}
	for _, n := range nexuses {
		if s.KeyOf(n) != m.keys[n] || s.Rights(n) != m.rights(n) || s.Holds(n) != m.holds(n) {
			t.Errorf("%v: key %d, rights %b, holds %v; the model has %d, %b, %v", n, s.KeyOf(n), s.Rights(n), s.Holds(n), m.keys[n], m.rights(n), m.holds(n))
		}
		if !slices.Equal(told[n], m.told[n]) || aborted[n] != m.aborted[n] {
			t.Errorf("%v: told %v, aborted %v; the model says %v, %v", n, told[n], aborted[n], m.told[n], m.aborted[n])
		}
	}
}
