package haechi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"lunar/internal/arith"
)

// ErrInsufficient is what every refused admission wraps.
var ErrInsufficient = errors.New("reservation exceeds capacity")

// AdmissionError is the arithmetic of a refused reservation. Rates are tokens
// per period.
type AdmissionError struct {
	Name      string   // whose reservation; empty for the aggregate
	Asked     int64    // the reservation, or the sum of all
	Available int64    // the capacity that it must fit
	Local     bool     // Available is what one initiator can use (C_L)
	Devices   []string // that alone can serve what was asked; nil for all there is
	Kind      string   // what Devices are; empty: devices
}

// Error is the arithmetic in words.
func (e *AdmissionError) Error() string {
	what := "reservations add up to"
	if e.Name != "" {
		what = fmt.Sprintf("%s reserves", e.Name)
	}
	of := "the capacity"
	if e.Local {
		of = "the capacity of one initiator"
	}
	text := fmt.Sprintf("%s %d tokens per period, %d more than %s of %d", what, e.Asked, e.Asked-e.Available, of, e.Available)
	kind := cmp.Or(e.Kind, "device")
	switch len(e.Devices) {
	case 0:
	case 1:
		text += " of " + kind + " " + e.Devices[0]
	default:
		text += " of " + kind + "s " + strings.Join(e.Devices, ", ") + " together"
	}
	return text
}

// Unwrap makes the error an ErrInsufficient.
func (e *AdmissionError) Unwrap() error { return ErrInsufficient }

// Admission is Haechi's admission control. Capacities are tokens per period.
type Admission struct {
	Capacity      int64 // T·C_G
	LocalCapacity int64 // T·C_L; 0 is no local test
}

// Admit tests reservations, given with their names, against both capacities:
// each one locally, then the sum. The error is an *AdmissionError.
func (a Admission) Admit(names []string, reservations []int64) error {
	for i, r := range reservations {
		if err := a.admitLocal(names[i], r); err != nil {
			return err
		}
	}
	return a.admitSum(arith.Sum(reservations))
}

func (a Admission) admitLocal(name string, reservation int64) error {
	if a.LocalCapacity > 0 && reservation > a.LocalCapacity {
		return &AdmissionError{Name: name, Asked: reservation, Available: a.LocalCapacity, Local: true}
	}
	return nil
}

func (a Admission) admitSum(reserved int64) error {
	if reserved > a.Capacity {
		return &AdmissionError{Asked: reserved, Available: a.Capacity}
	}
	return nil
}

// LocalViolation is the local test at time t of a period of the given length
// (ns): it reports that an initiator needs more of its reservation than one
// initiator can still get, R − N > (T−t)·C_L. It is a reason to alert, not to
// hold a command back.
func (a Admission) LocalViolation(reservation, done, t, period int64) bool {
	return reservation-done > arith.MulDiv(a.LocalCapacity, max(0, period-t), period)
}
