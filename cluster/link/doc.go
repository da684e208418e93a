// Package link connects the nodes of a cluster with each other: whole messages, with answers
// or without, over connections on which both sides have proved by certificates who they are.
//
// # Connections
//
// Each node connects to each other one and sends what it wants on the connections that it has
// made; answers come back on the same one. There are several to each node: one of beats,
// one of what needs no answer, some of calls, over which the lanes are spread, and as many of what
// follows up on calls (Follow). So neither megabytes of data nor a node that takes nothing delays
// beats, and no node delays another. When a connection of beats ends, or has been silent for too
// long, the others of that direction end with it. The others have beats too, which say nothing, and
// end for themselves when nothing comes any more.
//
// # Order
//
// Messages of one lane to one node are handled in the order in which they were sent, also
// across connections: the handling of what came on an earlier one is over, or answered by
// nobody, before the next one is read. Therefore, when a later message of the same lane was
// answered, an earlier one of unknown outcome has been given to its handler, or never will be.
//
// # Bounds
//
// What waits to be sent to a node has a bound in bytes and messages, beyond which messages
// are refused. A node reads no more requests of another one while those that it has not
// answered, with the room for their answers, take more memory than the configuration gives.
// Answers need none of it, and are read in any case. What follows up on a call has connections and
// memory of its own: it never waits behind the calls that wait for it. So two nodes that fill each
// other's memory with calls go on, as long as follow-ups are answered without waiting for calls.
package link
