// Package target is the iSCSI target node (RFC 7143): portals, sessions,
// connections, event threads and the TCP datamover.
//
// The data path, in the order of its functions:
//
//	tcpMover.Ready      one read drains the socket          tcp_rx.go
//	tcpMover.parse      PDUs in place, digests checked      tcp_rx.go
//	Connection.Received one row per opcode                  dispatch.go
//	scsiCommand         window, task, LUN                   command.go
//	LogicalUnit.Execute the device server                   scsi/
//	Connection.SendDataIn / ReceiveDataOut / Complete       transfer_in.go, transfer_out.go
//	Connection.Stamp    StatSN, ExpCmdSN, MaxCmdSN          window.go
//	tcpMover.flush      one sendmsg for all of a pass       tcp_tx.go
//
// Everything from Ready to flush happens on the connection's event thread.
// Accepting, login and all control work run on ordinary goroutines
// (portal.go, login.go, server.go) and reach a connection only by posting to
// its thread.
package target
