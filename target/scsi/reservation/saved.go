package reservation

import (
	"encoding/json"
	"fmt"

	"lunar/internal/durable"
)

// saved is the form in which a State outlives a loss of power, or the server that has it.
type saved struct {
	Version       int            `json:"version"`
	Generation    uint32         `json:"generation,omitempty"` // of a whole one
	Persist       bool           `json:"persist,omitempty"`    // of a whole one
	Type          Type           `json:"type,omitempty"`
	Holder        *Nexus         `json:"holder,omitempty"`
	Registrations []Registration `json:"registrations"`
}

// The versions: of what outlives a loss of power, and of whole ones.
const (
	savedVersion = 1
	wholeVersion = 2
)

// Marshal returns what a loss of power is to leave of s: registrations and
// reservation, or nothing without APTPL. PRGENERATION begins anew (SPC-4 clause
// 6.15.2).
func (s *State) Marshal() ([]byte, error) {
	if !s.persist {
		s = new(State)
	}
	return json.MarshalIndent(s.saved(), "", "\t")
}

// MarshalWhole returns all of s: what another server of the same logical unit is to go on
// with.
func (s *State) MarshalWhole() ([]byte, error) {
	out := s.saved()
	out.Version, out.Generation, out.Persist = wholeVersion, s.generation, s.persist
	return json.Marshal(out)
}

func (s *State) saved() saved {
	out := saved{Version: savedVersion, Type: s.kind, Registrations: append([]Registration{}, s.registrations...)}
	if s.kind != 0 && !s.kind.Shared() {
		holder := s.holder
		out.Holder = &holder
	}
	return out
}

// Unmarshal is the opposite of Marshal. It refuses what no State can be.
func Unmarshal(data []byte) (*State, error) { return unmarshal(data, savedVersion) }

// UnmarshalWhole is the opposite of MarshalWhole. It refuses what no State can be.
func UnmarshalWhole(data []byte) (*State, error) { return unmarshal(data, wholeVersion) }

func unmarshal(data []byte, version int) (*State, error) {
	var in saved
	if err := durable.Strict(data, &in); err != nil {
		return nil, err
	}
	if in.Version != version {
		return nil, fmt.Errorf("version: found %d, expected %d", in.Version, version)
	}
	if in.Registrations == nil {
		return nil, fmt.Errorf("found no registrations, expected a list, though it were empty: %w", durable.ErrDamaged)
	}
	s := &State{persist: len(in.Registrations) > 0}
	if version == wholeVersion {
		s.generation, s.persist = in.Generation, in.Persist
	}
	for _, r := range in.Registrations {
		n := r.Nexus
		if r.Key == 0 || s.registered(n) || len(s.registrations) == MaxRegistrations {
			return nil, fmt.Errorf("registration of %v with key %#x: found a key of zero, a nexus twice or more than %d registrations", n, r.Key, MaxRegistrations)
		}
		s.registrations = append(s.registrations, r)
	}
	if in.Type == 0 {
		return s, nil
	}
	if !in.Type.Valid() {
		return nil, fmt.Errorf("type: found %d, expected one of SPC-4", in.Type)
	}
	var holder Nexus
	if in.Holder != nil {
		holder = *in.Holder
	}
	s.reserve(holder, in.Type)
	if !in.Type.Shared() && !s.registered(holder) || len(s.registrations) == 0 {
		return nil, fmt.Errorf("reservation of type %v: found %v as its holder, expected a registered nexus", in.Type, holder)
	}
	return s, nil
}
