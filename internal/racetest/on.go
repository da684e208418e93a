//go:build race

// Package racetest tells tests whether the race detector watches them. It makes code some
// ten times as slow: what has no concurrency, and does the same again and again with other
// values, does less of it then. `make test` runs such tests without it as well, whole.
package racetest

// Enabled reports whether this is a build with the race detector.
const Enabled = true
