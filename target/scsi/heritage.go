package scsi

import (
	"errors"
	"slices"

	"lunar/target/scsi/mode"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// Errors of LUConfig.SaveHeritage.
var (
	// ErrBusy: nothing can be saved now, and nothing has changed.
	ErrBusy = errors.New("it cannot be saved now")
	// ErrElsewhere: another server serves the logical unit. It may have what was to be
	// saved.
	ErrElsewhere = errors.New("another server serves the logical unit")
	// ErrTooLarge: there is no room for so much. Nothing has changed.
	ErrTooLarge = errors.New("there is no room for so much")
)

// Heritage is what of a logical unit that several servers present outlives the one that
// serves it. Nobody changes it.
type Heritage struct {
	Reservations *reservation.State
	Latest       Latest            // that has made them so; zero: nobody has, or an administrator
	Reserved     reservation.Nexus // who holds RESERVE; zero: nobody
	Owed         []Owed
	Identifying  Identifying
	Modes        *mode.Values // without WriteThrough, which is a setting; nil: the defaults
	Sanitizing   *SanitizeNote
}

// Owed is a unit attention condition that a nexus may not have been told of yet. It is told
// again after a change of servers rather than lost.
type Owed struct {
	reservation.Nexus
	ASC sense.ASC `json:"asc"`
}

// maxOwed bounds them. The oldest give way: their initiators have asked for nothing since.
const maxOwed = 1024

// owe adds conditions, each once.
func owe(owed []Owed, more ...Owed) []Owed {
	owed = slices.Clone(owed)
	for _, o := range more {
		if !slices.Contains(owed, o) {
			owed = append(owed, o)
		}
	}
	return owed[max(0, len(owed)-maxOwed):]
}
