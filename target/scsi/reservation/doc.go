// Package reservation is SPC-4's persistent reservations (clause 5.13) as a pure
// state machine: the registered I_T nexuses and their keys, the reservation and
// its holders, and the effect of each service action of PERSISTENT RESERVE OUT. It knows neither logical units nor threads nor files: a State is
// immutable, Apply returns the next one with what has to be told to whom, and
// the device server does the rest.
package reservation
