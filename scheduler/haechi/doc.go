// Package haechi is Haechi's token scheduler: reservations, limits and a pool of tokens
// that belong to nobody.
//
// An Engine holds the tokens of one initiator for one backing device on one event
// thread, the paper's client. The device's Monitor, the paper's data node, owns the
// period and the global Pool, converts reservations that are not used and, with its
// Estimator, follows the capacity. Admission refuses reservations that do not fit.
//
// Everything is a pure state machine. Time is int64 nanoseconds and comes from the
// caller. A Pool alone may be shared by threads.
package haechi
