// Package reservation is SPC-4's persistent reservations (clause 5.13) as a pure
// state machine: which I_T nexuses are registered with which keys, who holds
// which reservation, and what the service actions of PERSISTENT RESERVE OUT make
// of that. It knows neither logical units nor threads nor files: a State is
// immutable, Apply returns the next one with what has to be told to whom, and
// the device server does the rest.
package reservation
