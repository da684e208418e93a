package nest

import (
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// Fabric is the network between hosts: who is a number.
type Fabric struct {
	kernel   *kernel.Kernel
	hosts    int
	pods     int // 0 is one switch for all
	gigabits float64
	slow     int64       // ps that a host takes to acknowledge
	up, down []*net.Link // by host
	rise     []*net.Link // edge to aggregation, aggregation to core
	fall     []*net.Link
	urgent   map[*net.Link]float64 // Gb/s that are admitted
}

// Queue is what the queues of a fabric's switches are like.
type Queue struct {
	Mark    int // packets, 0 is none
	Room    int // packets, 0 is without bound
	Reserve int // packets of Room for urgent ones
}

// NewStar returns a fabric of one switch.
func NewStar(k *kernel.Kernel, hosts int, gigabits float64, q Queue) *Fabric {
	f := &Fabric{kernel: k, hosts: hosts, gigabits: gigabits, urgent: map[*net.Link]float64{}}
	for range hosts {
		f.up = append(f.up, f.link(Queue{}, net.Propagation+net.Switching))
		f.down = append(f.down, f.link(q, net.Propagation))
	}
	return f
}

// NewFatTree returns a fat tree of switches with an even number of ports, one pod for each:
// ports³/4 hosts, and at most six links between two.
func NewFatTree(k *kernel.Kernel, ports int, gigabits float64, q Queue) *Fabric {
	half := ports / 2
	f := NewStar(k, ports*half*half, gigabits, q)
	f.pods = ports
	for range 2 * ports * half * half { // edge to aggregation in each pod, then aggregation to core
		f.rise = append(f.rise, f.link(q, net.Propagation+net.Switching))
		f.fall = append(f.fall, f.link(q, net.Propagation+net.Switching))
	}
	return f
}

func (f *Fabric) link(q Queue, delay int64) *net.Link {
	l := net.NewLink(f.kernel, net.PerByte(f.gigabits), delay)
	l.Mark, l.Room, l.Reserve = q.Mark, q.Room, q.Reserve
	return l
}

// Path is the links from a host to another. Hosts of an edge switch are 2 links apart, of
// a pod 4, others 6; which of equal ways a pair takes depends on its numbers alone.
func (f *Fabric) Path(from, to int) []*net.Link {
	first, last := f.up[from], f.down[to]
	if f.pods == 0 {
		return []*net.Link{first, last}
	}
	half := f.pods / 2
	edge, pod := from/half, from/half/half
	edgeTo, podTo := to/half, to/half/half
	if edge == edgeTo {
		return []*net.Link{first, last}
	}
	a, c := (from+to)%half, (from+to)/half%half // which aggregation switch, which of its cores
	path := []*net.Link{first, f.rise[edge*half+a]}
	if pod != podTo {
		cores := f.pods * half * half
		path = append(path, f.rise[cores+(pod*half+a)*half+c], f.fall[cores+(podTo*half+a)*half+c])
	}
	return append(path, f.fall[edgeTo*half+a], last)
}

// urgentShare is what urgent traffic may have of a link: nothing governs it, so that more
// would starve others and wait for itself.
const urgentShare = 0.2

// Admit reserves so many Gb/s for urgent traffic on the links of a path, and reports whether
// they all have that.
func (f *Fabric) Admit(path []*net.Link, gigabits float64) bool {
	for _, l := range path {
		if f.urgent[l]+gigabits > urgentShare*f.gigabits {
			return false
		}
	}
	for _, l := range path {
		f.urgent[l] += gigabits
	}
	return true
}

// back is the time in ps that an acknowledgement needs over a path, on which it finds no
// queue.
func (f *Fabric) back(path []*net.Link) int64 {
	return f.slow + int64(len(path))*(net.Propagation+net.Switching) - net.Switching
}
