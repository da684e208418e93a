// Package rdma is the link of a move of a volume over RDMA (iser/verbs): what package tcp is
// over sockets, with the same messages and credits.
//
// A move has a queue pair for its control channel and one for each data channel. The control
// channel of keyed, which is TLS, goes over messages of the first one (stream). A block is an
// RDMA WRITE to the memory that its credit names, and behind it, on the same queue pair, a
// message with its BLOCK_DONE: the link is ordered. Blocks are enciphered as over sockets, so
// that nobody on the way reads or alters them.
//
// Who has the one-time key can write to all blocks of the receiver's pool until the link is
// closed, even to one that is being stored. It could as well have sent that.
//
// Receives are never wanting: a side sends a message only if the peer has posted a receive for
// it, by credits of the stream, or by those of blocks. A peer that sends more than that loses
// its connection.
package rdma
