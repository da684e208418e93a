// Package nodes keeps one promise over all nodes of a cluster: what an initiator has reserved
// it gets whichever nodes serve it, and its limit holds over all of them.
//
// A node's coordinator looks to a coordinator over all nodes as event threads look to it. The
// nodes elect who runs that one, the Controller. Each interval (a fifth of a period of one
// second) it asks every node for a Report, runs pShift over nodes and devices, and sends
// each node a Grant. What the nodes tell it is in their reports whole: a controller begins
// without state.
//
// # Safety
//
// A grant holds for two intervals. A node without one has, of each limit, the smaller of what
// it had and one N-th, N being the nodes that live; so all together have no more than the
// limit, whoever has heard what. The controller takes a node that lives and does not report
// to have its N-th, and deals the rest. While a grant is on its way to one node and not yet
// to another, and while one node's is lost, both have what they had: for up to two intervals
// the sum may be more by what was moved.
//
// Each controller has a term, which grows. A node obeys the highest of which it has heard in
// the last seconds, and tells the others so, which then resign.
//
// # Messages
//
// Messages are plain data. They name devices by name, times as durations, and entities by the
// numbers that the node has given them. A report says what has changed since the one that
// the controller has, and is whole if it has none; so neither a lost message nor a new
// controller needs more than the next report.
//
// Everything here is a pure state machine, as in package scheduler.
package nodes
