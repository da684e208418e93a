// Package plm decides about devices with predictable latency, which serve reads in
// deterministic windows (DT) and catch up with background work in non-deterministic ones
// (ND): the windows of a mirrored pair, of which one set is deterministic while the other
// works (Pair), PLMC's division of deterministic reads among classes (Plan, Predictor), and
// PLMLight, which sends what a window's writes exceed to a faster device (Writes, Reads).
//
// Everything is a pure state machine. Time is int64 nanoseconds and comes from the caller.
package plm
