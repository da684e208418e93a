//go:build !race

package racetest

// Enabled reports whether this is a build with the race detector.
const Enabled = false
