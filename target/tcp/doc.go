// Package tcp is iSCSI over TCP (RFC 7143), a transport of package target as package
// iser is one: portals that accept, the login phase on a goroutine of each connection,
// and the Datamover on its event thread.
//
// The data path, in the order of its functions:
//
//	mover.Ready      an edge of epoll                         receive.go
//	mover.receive    one read drains the socket               receive.go
//	mover.parse      PDUs in place, digests checked           receive.go
//	...              Receiver.Received executes a command     target
//	mover.send       responses join the queue                 send.go
//	mover.flush      one sendmsg at the end of a pass         send.go
//
// Up to three parts of eight PDUs leave earlier in a pass, so that the initiator works while
// the rest is executed.
//
// remote.go hands a sendmsg to a thread of the NUMA node that the data lie on.
package tcp
