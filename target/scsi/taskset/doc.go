// Package taskset is SAM-5's task set (clause 8) of a logical unit as a pure
// state machine: which commands may run, by their task attributes, by what they
// do, and by an ACA condition. There is one task set for all initiators (TST
// 000b), SIMPLE commands are reordered at will (QUEUE ALGORITHM MODIFIER 1h), and
// a failed command ends no others (QERR 00b).
//
// It knows only the commands that matter to others: those with an attribute other
// than SIMPLE, and those that wait. A SIMPLE command that may run is forgotten at
// once, and while Watched is false none need to be shown at all. The owner of an
// ORDERED command asks for those elsewhere, and calls Settled when all commands older
// than it have ended.
package taskset
