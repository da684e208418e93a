// Package scheduler decides who may have the next I/O. It gives initiators their
// promised rates (reservations), holds them to their highest rates (limits) and
// shares the rest by weight.
//
// Everything here is a pure state machine: no I/O, no goroutine, no clock of
// its own. Time is int64 nanoseconds and comes from the caller, and no decision
// depends on map order or chance, so the same calls give the same decisions in
// the server and in the simulator.
//
// # The parts
//
//   - Package haechi: an Engine holds the tokens of one initiator for one backing
//     device on one event thread; the device's Monitor owns the period, the global
//     Pool, conversion and, with its Estimator, the capacity.
//   - Package pshift: an Instance divides tokens over servers (event threads) by
//     demand and shifts them away from overloaded ones; the Controller runs it
//     every interval, for reservations and then for limits.
//   - Dispatcher: pShift's Algorithm 1. Urgent, then who holds reservation
//     tokens, then the rest by weighted round robin.
//   - Bucket paces limits; Rules compile into Entities that a Gate, the event
//     thread's own front, puts to work.
//   - Turns shares the event thread itself, where that and no device is scarce.
//   - The Coordinator runs the monitors of all devices and pShift's controller over
//     the gates of all threads. Policy.Admit refuses reservations that do not fit.
//   - Package batch decides how many small requests are gathered
//     before they go on together (Tyche).
//
// # In an event thread
//
// Open a queue when a session gets a logical unit, Close it at the session's
// end. Give each command to Admit, which says whether it may run at once.
// After a command ends call Done, then Next until it returns nil, and the same
// at the time that Wake gives. Every millisecond call Tick. As often as
// conversion is wanted, at least at the coordinator's Deadline, send it a
// Report; put its Grant into force when it comes. Apply takes a new policy at
// any time. Commands that must never wait are simply not given to the gate.
//
// The coordinator is one for all threads and may live on any one: Collect takes
// reports, Check converts, Welcome and Redistribute fill grants.
//
// # Devices
//
// A queue is on a backing Device. On each thread a device has a dispatcher and a
// window of its own, and for each initiator an Engine; over the threads it has a
// Monitor. pShift's servers are the pairs of thread and device that are in use,
// so reservations go where the demand is, over all of them. Limits are of
// threads: a bucket on each holds for all devices together.
//
// Order can be chosen only among commands that wait, so GateConfig.Window has
// to be below what the initiators keep outstanding together, and an initiator
// reaches its reservation only if it keeps enough outstanding for it.
//
// The capacity of a server is estimated from its served I/Os, if commands waited for
// it throughout. If limits throttled them although the device had room, they get a
// growing part more there, so that the device can show its capacity. Otherwise limits
// that are divided by served I/Os would hold the device back for good.
//
// # Tokens
//
// A token stands for one 4 KiB I/O by default; a command costs Task.Cost of
// them. Counts are paid behind: who has a token may issue a command that costs
// more, and owes the difference. With costs of 1, as in the papers, nobody
// ever owes anything.
package scheduler
