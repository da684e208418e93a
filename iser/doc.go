// Package iser is iSCSI Extensions for RDMA (RFC 7145): the transport that moves
// data between the initiator's memory and the server's without copying them. It
// serves what the Linux kernel's ib_iser and libiscsi speak, over the devices
// of package verbs.
//
// # The way of a command
//
//  1. The command's PDU arrives in a receive buffer of its connection
//     (receive.go). Its iSER header tells of the initiator's buffers (STags),
//     which are remembered by the task's tag (tags.go).
//  2. Data for the initiator leave by RDMA Writes out of the buffers, or the cache
//     memory, that they lie in; data of the initiator come by RDMA Reads into
//     the command's buffers (send.go, from the queues of sender.go).
//  3. The status is a SEND behind the writes in the same list of work; one list
//     for each connection and pass of the event thread, before which receive
//     buffers are posted again.
//  4. The completion of the SEND releases what the writes before it read from.
//
// # Threads
//
// A connection belongs to one event thread, on which all of it happens but
// login and control work: its queue pair is bound to that thread's completion
// queue (pollgroup.go). The control goroutine (control.go) takes the connection
// manager's events, makes and destroys queue pairs.
//
// # Ends
//
// A connection that is to end is disconnected, and has ended when all that was
// posted has been flushed: only then is memory given back that the device could
// read or write.
package iser
