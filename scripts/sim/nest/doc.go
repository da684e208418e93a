// Package nest is the end-to-end simulator: hosts, a network with queues that mark packets,
// and storage servers with the stages of a request, on one clock. A request is sent in
// packets over the links of sim/net, wakes the server's thread, passes the gate of
// lunar/scheduler, is looked up in the partition of lunar/cache, executed by a device, and
// answered alone or gathered with others by Tyche's level.
//
// The clock counts ps (net.Nanosecond and others): a packet of 128 bytes takes 10.24 ns.
package nest
