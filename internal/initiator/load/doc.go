// Package load is the engine of cmd/tgtload: it keeps a number of commands
// outstanding on each of several logged-in connections from one event thread,
// with less CPU per I/O than a target can spend.
//
// A connection's turn, once per pass of the event loop, in this order:
//
//	receive  one read into the connection's buffer                 (stream.go)
//	parse    PDUs in place; Data-In is looked at only to verify it (stream.go)
//	take     each PDU's effect on its slot                         (connection.go)
//	issue    new commands into the free slots, within the window   (issue.go)
//	flush    one sendmsg for all requests and data of the turn     (outbox.go)
//
// Time is taken once per pass. Nothing on that way allocates: slots, headers,
// vectors and data are made before the run and live off-heap where they are
// large.
package load
