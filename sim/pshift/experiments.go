// Package pshift simulates pShift's cluster around the real dispatchers and the
// real controller of lunar/scheduler.
package pshift

import "lunar/sim/experiment"

// Experiments lists the rows of pShift's evaluation (algorithms B2).
func Experiments() []experiment.Experiment { return nil }
