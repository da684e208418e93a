// Package qrdma is QRDMA: DCQCN whose flows share a bottleneck by the ratio of their
// classes, as QTCP's do (scheduler/qtcp). RDMA has no acknowledgements to count; a Flow
// holds a rate instead of a window, and learns once per interval whether a congestion
// notification packet came. The target of a flow is that of a qtcp.Device.
//
// A Flow is a pure state machine: no clock, no I/O, no allocation. Rates have one unit of
// the caller's choice.
package qrdma
