package reservation

import (
	"slices"

	"lunar/internal/places"
)

// Nexus is an I_T nexus: who reservations are for (SPC-4 clause 5.13.1).
type Nexus struct {
	Initiator string `json:"initiator"` // initiator port name: iSCSI name ",i,0x" and 12 hexadecimal digits of the ISID
	Target    string `json:"target"`    // name of the target device
	Port      uint16 `json:"port"`      // relative target port identifier
}

// Registration is a registered I_T nexus.
type Registration struct {
	Nexus
	Key uint64 `json:"key,string"`   // never zero
	By  string `json:"by,omitempty"` // whom it counts for, see Request.Holder; empty: it was saved by an older version
}

// MaxRegistrations bounds the registered nexuses of a logical unit. They outlive
// sessions, so nothing else does.
const MaxRegistrations = 1024

// State is all that there is of persistent reservations in one logical unit. It
// is immutable: any number of goroutines may read it. The zero value is that of
// a new unit.
type State struct {
	generation    uint32
	persist       bool
	registrations []Registration // in the order in which they came
	kind          Type
	holder        Nexus // unless the type is shared
}

// Generation is PRGENERATION: the number of service actions that have changed
// registrations since the logical unit was made.
func (s *State) Generation() uint32 { return s.generation }

// Persist reports whether the state is to survive a loss of power (APTPL).
func (s *State) Persist() bool { return s.persist }

// Registrations returns the registered nexuses in the order in which they came.
// They must not be changed.
func (s *State) Registrations() []Registration { return s.registrations }

// Type returns the type of the reservation; zero: there is none.
func (s *State) Type() Type { return s.kind }

// Holds reports whether n holds the reservation.
func (s *State) Holds(n Nexus) bool {
	switch {
	case s.kind == 0:
		return false
	case s.kind.Shared():
		return s.registered(n)
	}
	return s.holder == n
}

// ReservationKey returns the key that READ RESERVATION reports: the holder's;
// zero if the registered nexuses hold the reservation together.
func (s *State) ReservationKey() uint64 {
	if s.kind == 0 || s.kind.Shared() {
		return 0
	}
	return s.KeyOf(s.holder)
}

// KeyOf returns the key that n is registered with; zero: it is not.
func (s *State) KeyOf(n Nexus) uint64 {
	if i := s.find(n); i >= 0 {
		return s.registrations[i].Key
	}
	return 0
}

// Rights returns what n may do.
func (s *State) Rights(n Nexus) Rights {
	k := &kinds[s.kind]
	if s.kind == 0 || s.Holds(n) || k.members && s.registered(n) {
		return All
	}
	return All &^ k.exclude
}

func (s *State) registered(n Nexus) bool { return s.find(n) >= 0 }

func (s *State) find(n Nexus) int {
	return slices.IndexFunc(s.registrations, func(r Registration) bool { return r.Nexus == n })
}

// next is a copy to be changed.
func (s *State) next() *State {
	next := *s
	next.registrations = slices.Clone(s.registrations)
	return &next
}

// register gives n a key on behalf of by; it reports false if by has had its share
// of registrations, so that there are some left for others.
func (s *State) register(n Nexus, key uint64, by string) bool {
	if i := s.find(n); i >= 0 {
		s.registrations[i].Key = key
		return true
	}
	mine := 0
	for i := range s.registrations {
		if s.registrations[i].By == by {
			mine++
		}
	}
	if !places.Fair(mine, len(s.registrations), MaxRegistrations) {
		return false
	}
	s.registrations = append(s.registrations, Registration{n, key, by})
	return true
}

// remove ends the registrations that match and returns their nexuses. A shared
// reservation ends with the last registration.
func (s *State) remove(match func(Registration) bool) []Nexus {
	var gone []Nexus
	s.registrations = slices.DeleteFunc(s.registrations, func(r Registration) bool {
		if !match(r) {
			return false
		}
		gone = append(gone, r.Nexus)
		return true
	})
	if s.kind.Shared() && len(s.registrations) == 0 {
		s.release()
	}
	return gone
}

func (s *State) reserve(n Nexus, t Type) {
	s.kind, s.holder = t, n
	if t.Shared() {
		s.holder = Nexus{}
	}
}

func (s *State) release() { s.kind, s.holder = 0, Nexus{} }
