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
// A grant holds for Holds, counted from the report that it follows, so that a controller can be
// replaced meanwhile. A node without one has, of each limit, the smaller of what it had and one
// N-th, N being the nodes that live; so all together have no more than the limit, whoever has
// heard what. The controller knows the same of a node that lives and does not report: it takes it
// to have what it was granted, and its N-th when that holds no more, and deals the rest. Of what
// an earlier controller has granted it knows what those have that report, and takes the silent
// ones to have all else. A node that has just come, or stood still, has little until it is granted
// more: nobody has heard of it.
//
// While a grant is on its way to one node and not yet to another both have what they had, and the
// sum may be more by what was moved: until the next grant, and for as long as a grant holds if the
// node is cut off before that.
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
