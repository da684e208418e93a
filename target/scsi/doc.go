// Package scsi is the device server: SAM-5's logical units, one table of
// commands (SPC-4, SBC-3), sense data, mode pages and unit attentions. It
// knows nothing of iSCSI: a transport drives it through Port.
//
// A command's way: LogicalUnit.Execute finds its row in the table, checks the
// CDB against the row's usage mask, delivers a pending unit attention or deferred
// error, checks write protection, and runs the row. Commands that move parameter
// data end at once; media commands pump segments between the Port and the
// backstore.Lane (read.go, write.go) and end when the last operation has ended.
// Everything of one command happens on the event thread that received it.
package scsi
