// Package qtcp is QTCP: DCTCP whose flows share a bottleneck by the ratio of their
// classes. A Flow holds the window of one connection and is updated once per round trip
// with the share of marked acknowledgements and with its quality: what it should get,
// divided by what it gets. A flow with quality above 1 is in deficit and does what DCTCP
// does; one below 1 has more than its share and makes way. A Device knows the classes and
// the bandwidth of the bottleneck that all its flows share, and says what each should get.
//
// Everything is a pure state machine: no clock, no I/O, no allocation. Rates have one unit
// of the caller's choice, that of the device's link. A Flow needs of its Device only the
// target, a number, so that flows of several threads need no lock: each thread adds up the
// rates of its own, and one place tells the Device the sum.
//
// The names of the variables are those of the end-to-end thesis, chapter 4: W, α, Q, m.
package qtcp
