// Package events keeps what has happened to a server, for those who want to hear it as it
// happens. Events are lines of the log whose message stands in a table, so that both say
// the same. The newest are kept; a slow reader is told how many it has missed, and nobody
// waits for one.
package events
