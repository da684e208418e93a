// Package target is the iSCSI target node (RFC 7143): portals, sessions,
// connections and event threads. Transports are packages of their own (tcp, iser),
// which know it through Portal, LoginTransport, Datamover and Receiver (transport.go,
// datamover.go).
//
// The way of a command, in the order of its functions, all of it on the connection's
// event thread:
//
//	tcp, iser                bytes become PDUs                      tcp/receive.go, ../iser
//	Connection.Spent         is it the connection's turn?           receiver.go, flow.go
//	Connection.Received      one row per opcode; command window     receiver.go, flow.go
//	Connection.scsiCommand   task, LUN, gate                        command.go, gate.go
//	LogicalUnit.Execute      the device server                      scsi/
//	task.SendDataIn          Data-In, with the status at its end    command.go
//	task.ReceiveDataOut      unsolicited data, R2Ts, Data-Out       dataout.go
//	task.Complete, task.end  the response; the task's place is free command.go
//	Connection.Stamp         StatSN, ExpCmdSN, MaxCmdSN             receiver.go
//	tcp, iser                one system call for all of a pass      tcp/send.go, ../iser
//
// The files are in three storeys, of which none uses what is above it:
//
//   - What event threads share out and count knows no session: flow.go, moves.go,
//     holder.go, gate.go, qos.go, ledger.go, recall.go with parts.go and snack.go,
//     traffic.go, and the configuration (config.go, settings.go, access.go, owners.go,
//     node.go).
//   - Sessions, connections and tasks belong to one event thread: sessionstate.go,
//     connection.go, command.go and all that they dispatch to. They ask the target node by
//     one interface (seam.go), and their recall asks them by another (recall.go).
//   - The Server makes and ends them on ordinary goroutines: portals, login, admission,
//     changes while in use, discovery, statistics. It reaches a session only by posting to
//     its thread.
package target
