package scheduler

// ByClass has something for each Class.
type ByClass[T any] [classes]T

// GroupNumbers is how many values the field GROUP NUMBER of a CDB has (SBC-3 clause 4.22).
const GroupNumbers = 32

// Tag is a class that something asks for; the zero value asks for none.
type Tag uint8

// TagOf is the tag of a class.
func TagOf(c Class) Tag { return Tag(c) + 1 }

// Class is the class that the tag asks for, if it does.
func (t Tag) Class() (c Class, asked bool) { return Class(t - 1), t > 0 }

// Network is what service classes are outside of the server: to the network that carries
// connections, and to initiators that name the class of a command. The zero value has no
// effect.
type Network struct {
	// DSCP is the code point (RFC 2474) of what connections of a class send; 0 leaves the
	// system's.
	DSCP ByClass[uint8]
	// Groups are the classes that commands get by their GROUP NUMBER, where the rule of
	// their initiator has GroupNumber.
	Groups [GroupNumbers]Tag
	// Governor bounds what is under way on connections of the classes High, Medium and Low by
	// congestion windows of their classes (package qtcp).
	Governor Governor
	// Delay is how much longer than the shortest round trip one is, in ns, that counts as
	// marked, where the network marks nothing.
	Delay int64
	// Links are the rates of network devices, in bytes per second, by name, that are not
	// what the devices say.
	Links map[string]int64
	// Targets are the latencies of classes, in ns, with which the time from an R2T to its last
	// byte is compared; 0: DefaultTarget.
	Targets ByClass[int64]
}

// Governor is who holds the congestion windows of a Network.
type Governor uint8

// The governors.
const (
	NoGovernor     Governor = iota
	ServerGovernor          // the server, which sends no more than they allow
	KernelGovernor          // the kernel's congestion control lunar_qtcp; the server where there is none
)

// Default times of a Network.
const (
	DefaultDelay  = 1e6  // ns
	DefaultTarget = 10e6 // ns
)

// Active reports whether anything of a connection depends on its class.
func (n *Network) Active() bool { return n.Governor != NoGovernor || n.Marks() }

// Marks reports whether connections of some class are marked.
func (n *Network) Marks() bool { return n.DSCP != ByClass[uint8]{} }

// Tags reports whether some GROUP NUMBER names a class.
func (n *Network) Tags() bool { return n.Groups != [GroupNumbers]Tag{} }

// Above reports whether a class goes before another one.
func (c Class) Above(o Class) bool { return classPlace[c] < classPlace[o] }

// WithNetwork is the policy with what its classes are to the network.
func (p *Policy) WithNetwork(n Network) *Policy {
	with := *p
	with.network = n
	return &with
}

// Network is what the policy's classes are to the network. Nobody changes it.
func (p *Policy) Network() *Network { return &p.network }
