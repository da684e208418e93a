// Package scsi is the device server: SAM-5's logical units, one table of commands
// (SPC-4, SBC-3), VPD pages and unit attentions. It knows nothing of iSCSI: a transport
// drives it through Port (port.go). Sense data, mode pages, reservations, task sets and
// third-party copies are packages below it, without logical units.
//
// A command's way: LogicalUnit.Execute (execute.go) finds its row in the table
// (table.go), checks the CDB against the row's usage mask, delivers a pending unit
// attention or deferred error, checks write protection, and runs the row. Commands that
// move parameter data end at once; media commands (read.go, write.go) pump segments
// (segment.go) between the Port and the backstore.Lane, and end when the last operation
// has ended. Everything of one command happens on the event thread that
// received it.
//
// Files of commands enlist their rows in the table and use what is below them; nothing
// below uses a command. What a command keeps that few commands have is a feature: its
// part in a copy, in a sanitize operation or among atomic writes.
package scsi
