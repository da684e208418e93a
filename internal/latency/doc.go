// Package latency keeps how long commands take, for every initiator and volume, always:
// cheap enough for an event thread to count each command, small enough to be kept for a
// thousand initiators.
//
// An event thread has a Table, whose slots only it writes: a slot is what one initiator
// does with one volume. Anyone may read them. A Book adds up what all tables have counted
// since it read them last, which is how slots can be replaced without that a sum ever
// goes back.
package latency
