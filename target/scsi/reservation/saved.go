package reservation

import (
	"encoding/json"
	"fmt"

	"lunar/internal/durable"
)

// saved is the form in which a State outlives a loss of power.
type saved struct {
	Version       int                 `json:"version"`
	Type          Type                `json:"type,omitempty"`
	Holder        *savedNexus         `json:"holder,omitempty"`
	Registrations []savedRegistration `json:"registrations"`
}

type savedNexus struct {
	Initiator string `json:"initiator"`
	Target    string `json:"target"`
	Port      uint16 `json:"port"`
}

type savedRegistration struct {
	savedNexus
	Key uint64 `json:"key,string"`
	By  string `json:"by,omitempty"`
}

const savedVersion = 1

// Marshal returns what a loss of power is to leave of s: registrations and
// reservation, or nothing without APTPL. PRGENERATION begins anew (SPC-4 clause
// 6.15.2).
func (s *State) Marshal() ([]byte, error) {
	if !s.persist {
		s = new(State)
	}
	out := saved{Version: savedVersion, Type: s.kind, Registrations: []savedRegistration{}}
	if s.kind != 0 && !s.kind.Shared() {
		holder := savedNexus(s.holder)
		out.Holder = &holder
	}
	for _, r := range s.registrations {
		out.Registrations = append(out.Registrations, savedRegistration{savedNexus(r.Nexus), r.Key, r.By})
	}
	return json.MarshalIndent(out, "", "\t")
}

// Unmarshal is the opposite of Marshal. It refuses what no State can be.
func Unmarshal(data []byte) (*State, error) {
	var in saved
	if err := durable.Strict(data, &in); err != nil {
		return nil, err
	}
	if in.Version != savedVersion {
		return nil, fmt.Errorf("version: found %d, expected %d", in.Version, savedVersion)
	}
	if in.Registrations == nil {
		return nil, fmt.Errorf("found no registrations, expected a list, though it were empty: %w", durable.ErrDamaged)
	}
	s := &State{persist: len(in.Registrations) > 0}
	for _, r := range in.Registrations {
		n := Nexus(r.savedNexus)
		if r.Key == 0 || s.registered(n) || len(s.registrations) == MaxRegistrations {
			return nil, fmt.Errorf("registration of %v with key %#x: found a key of zero, a nexus twice or more than %d registrations", n, r.Key, MaxRegistrations)
		}
		s.registrations = append(s.registrations, Registration{n, r.Key, r.By})
	}
	if in.Type == 0 {
		return s, nil
	}
	if !in.Type.Valid() {
		return nil, fmt.Errorf("type: found %d, expected one of SPC-4", in.Type)
	}
	var holder Nexus
	if in.Holder != nil {
		holder = Nexus(*in.Holder)
	}
	s.reserve(holder, in.Type)
	if !in.Type.Shared() && !s.registered(holder) || len(s.registrations) == 0 {
		return nil, fmt.Errorf("reservation of type %v: found %v as its holder, expected a registered nexus", in.Type, holder)
	}
	return s, nil
}
