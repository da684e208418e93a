// Package bulk moves whole volumes between servers, and compares and rewrites them: work
// with stages (internal/pipeline) that does not run on the event threads of initiators.
//
// Send reads a volume in blocks and Receive stores them, over a Link, which is sockets
// (bulk/tcp). A block goes through load, digest, cipher and network here, and
// through network, cipher and store there. Its digest goes with it, and is compared with what
// is stored when that is read again.
//
// The receiving side has a Journal with the digest of each block that it has stored. It
// tells these first, and the sender sends what differs. That is how a move that was broken
// off goes on, and how one is repeated of what has changed. A digest of the digests of all
// blocks ends the move, after the receiver has read its copy again.
//
// A volume may be written while it is sent: what was altered meanwhile is sent again, and
// the last of it while commands are held.
package bulk
