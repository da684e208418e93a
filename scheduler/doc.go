// Package scheduler decides who may have the next I/O. It gives initiators the
// rates that they were promised (reservations), holds them to the rates that
// they may not exceed (limits) and shares what is left by weight.
//
// Everything here is a pure state machine: no I/O, no goroutine, no clock of
// its own. Time is int64 nanoseconds and comes from the caller, and no decision
// depends on map order or chance, so the same calls give the same decisions in
// the server and in the simulator.
//
// # The parts
//
//   - Haechi: an Engine holds the tokens of one initiator on one event thread;
//     the Monitor owns the period, the global Pool, conversion and, with its
//     Estimator, the capacity. Admission refuses reservations that do not fit.
//   - pShift: an Instance divides tokens over servers (event threads) by
//     demand and shifts them away from overloaded ones; the Controller runs it
//     every interval, for reservations and then for limits.
//   - Dispatcher: pShift's Algorithm 1. Urgent, then who holds reservation
//     tokens, then the rest by weighted round robin.
//   - Bucket paces limits; Rules compile into Entities that a Gate, the event
//     thread's own front, puts to work.
//
// # Tokens
//
// A token stands for one 4 KiB I/O by default; a command costs Task.Cost of
// them. Counts are paid behind: who has a token may issue a command that costs
// more, and owes the difference. With costs of 1, as in the papers, nobody
// ever owes anything.
package scheduler
