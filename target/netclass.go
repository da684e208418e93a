package target

import (
	"net/netip"

	"lunar/scheduler"
)

// NetworkClass is what a transport is told of the class of its connection. The zero value
// asks for nothing.
type NetworkClass struct {
	Class   scheduler.Class
	DSCP    uint8              // of what is sent; 0: the system's
	Network *scheduler.Network // by which what is under way is governed; nil: it is not
}

// Classed is a Datamover whose network tells packets apart by class, or that governs what is
// under way by class. Its methods run on the connection's event thread.
type Classed interface {
	Datamover
	// SetClass puts the connection into a class from now on. An error says what of it is
	// not in force.
	SetClass(NetworkClass) error
	// Governance is how the connection is governed now.
	Governance() Governance
}

// Governance is how much of a connection may be under way, and why.
type Governance struct {
	Form       string  // what congestion is seen by: Marks or Delay; empty: the connection is not governed
	Device     string  // network device
	Congestion string  // the kernel's congestion control of the connection
	Window     int64   // bytes that may be under way
	Pace       int64   // bytes per second that may be sent, where that is bounded and no window is
	Alpha      float64 // smoothed share of what was marked
	Quality    float64 // the target divided by the rate; below 1 the connection makes way
	Rate       int64   // measured, bytes per second
	Target     int64   // bytes per second
	Estimate   int64   // of the bottleneck behind the device, bytes per second
	Pacing     Pacing  // of what writes were asked for
}

// Pacing is how what writes were asked for is bounded.
type Pacing struct {
	Window int64 // bytes that may be asked for; 0: any
	Pace   int64 // bytes per second that may be fetched, where that is bounded and no window is
}

// What Governance sees congestion by.
const (
	Marks = "marks" // of the network (ECN)
	Delay = "delay" // round trips that are longer than the shortest
)

// ConnectionClass is a connection and its class.
type ConnectionClass struct {
	Initiator, Target string
	Remote            netip.AddrPort
	Class             scheduler.Class
	DSCP              uint8
	Governance
}
