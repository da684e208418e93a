// Package qrdma is QRDMA: DCQCN whose flows share a bottleneck by the ratio of their
// classes, as QTCP's do (scheduler/qtcp). RDMA has no acknowledgements to count; a Flow
// holds a rate instead of a window, and learns once per interval whether a congestion
// notification packet came. The target of a flow is that of a qtcp.Device.
//
// A Pacer spaces by the rate of its flow what a connection posts, and learns of congestion by
// how long operations take, where the network tells nothing. With a Level the flows of a line
// whose rate is known have their shares of it before it is congested.
//
// A Flow is a pure state machine: no clock, no I/O, no allocation. Rates have one unit of
// the caller's choice.
package qrdma
