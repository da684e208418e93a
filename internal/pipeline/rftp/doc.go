// Package rftp is a protocol that moves a data set in blocks into memory that the receiver
// gives credits for (RFTP, Ren's dissertation, chapter 4): its messages, the header of a
// block, and what source and sink decide, as pure machines.
//
// A source sends a block only with a credit, which names memory of the sink. The sink
// gives credits when it hears that a block is there: two for each, as long as it has free
// memory, so that they double in each cycle. With messages on a control channel beside the
// data that cycle is two round trips, and one where the message is behind or in front of
// the data on the same channel (ordered).
//
// Packages below move the data: rdma over queue pairs, tcp over sockets.
package rftp
