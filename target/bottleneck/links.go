package bottleneck

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"lunar/scheduler"
	"lunar/scheduler/qrdma"
	"lunar/scheduler/qtcp"
)

// Way is a direction through a device.
type Way uint8

// The ways.
const (
	Out Way = iota // to initiators
	In
)

// Links are network devices by name. The zero value has none yet.
type Links struct {
	mu     sync.Mutex
	byName map[way]*Link
}

type way struct {
	name string
	to   Way
}

// Link is one way through a network device with the bottleneck behind it. All event threads
// have one estimate of it: with one for each connection the shares are lost (package qtcp).
type Link struct {
	name string

	mu      sync.Mutex
	rate    float64 // bytes per second
	device  qtcp.Device
	members map[*Member]struct{}
	due     int64 // when the estimate is corrected next

	delayed int // members that are
	drain   qtcp.Drain

	level    qrdma.Level
	levelDue int64 // when it is set next
	demands  []qrdma.Demand
}

// Member is what a governed connection tells of itself.
type Member struct {
	Class    qtcp.Class
	Delayed  bool         // it sees congestion by what round trips take, and holds back with the others that do
	Trip     atomic.Int64 // such a round trip, ns
	Measured atomic.Int64 // bytes per second
	Slow     atomic.Bool  // it is in slow start
	Late     atomic.Bool  // its operations end late (package qrdma)

	held int64 // when it held back last; the link's
}

// classes are QTCP's. Urgent has none.
var classes = scheduler.ByClass[qtcp.Class]{scheduler.High: qtcp.High, scheduler.Medium: qtcp.Medium, scheduler.Low: qtcp.Low}

// Class is the class of a connection among those that share a bottleneck.
func Class(c scheduler.Class) qtcp.Class { return classes[c] }

const (
	// levelEvery is how long, in ns, a link's level holds.
	levelEvery = 5_000_000
)

// unknownRate is the rate of a device that tells none, in bytes per second: 10 Gbit/s.
const unknownRate = 1.25e9

// Of is the link of a local address now, with the rate that the configuration gives its device,
// or the device says. Where no network device has the address it is called device.
func (l *Links) Of(local netip.Addr, device string, to Way, n *scheduler.Network) *Link {
	name := deviceOf(local, device)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[way]*Link{}
	}
	rate := float64(n.Links[name])
	if rate == 0 {
		rate = speedOf(name)
	}
	k := l.byName[way{name, to}]
	if k == nil {
		k = &Link{name: name, members: map[*Member]struct{}{}}
		l.byName[way{name, to}] = k
	}
	k.setRate(rate)
	return k
}

// deviceOf is the name of the device that has an address, or otherwise. It asks the kernel for the
// addresses of all devices at once: net.Interface.Addrs does that for each device again.
func deviceOf(local netip.Addr, otherwise string) string {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return otherwise
	}
	all, _ := syscall.ParseNetlinkMessage(dump) // what the kernel has written
	for i := range all {
		if all[i].Header.Type != syscall.RTM_NEWADDR {
			continue
		}
		own, peer := netip.Addr{}, netip.Addr{}
		attributes, _ := syscall.ParseNetlinkRouteAttr(&all[i])
		for _, a := range attributes {
			switch a.Attr.Type { // rtnetlink(7)
			case syscall.IFA_LOCAL:
				own, _ = netip.AddrFromSlice(a.Value)
			case syscall.IFA_ADDRESS: // of a point-to-point device the other end's
				peer, _ = netip.AddrFromSlice(a.Value)
			}
		}
		if own.IsValid() && own != local || !own.IsValid() && peer != local {
			continue
		}
		// Behind family, length of the prefix, flags and scope is the device's index.
		if device, err := net.InterfaceByIndex(int(binary.NativeEndian.Uint32(all[i].Data[4:]))); err == nil {
			return device.Name
		}
	}
	return otherwise
}

// speedOf is what a device says of its rate, in bytes per second.
func speedOf(name string) float64 {
	text, err := os.ReadFile("/sys/class/net/" + name + "/speed")
	mbits, parseErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || parseErr != nil || mbits <= 0 {
		return unknownRate
	}
	return float64(mbits) * 1e6 / 8
}

// setRate begins with another rate.
func (k *Link) setRate(rate float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rate == rate {
		return
	}
	k.rate, k.device, k.level, k.levelDue = rate, qtcp.NewDevice(rate, qtcp.DefaultRatios), qrdma.NewLevel(rate), 0
	for m := range k.members {
		k.device.Join(m.Class)
	}
}

// Name is the device's.
func (k *Link) Name() string { return k.name }

// Join counts a connection that has something to send from now on, in ns.
func (k *Link) Join(m *Member, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[m] = struct{}{}
	k.device.Join(m.Class)
	if !m.Delayed {
		return
	}
	if k.delayed++; !qtcp.Met(m.held, now) {
		k.drain.Came(now)
	}
}

// Leave ends what Join began.
func (k *Link) Leave(m *Member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, m)
	k.device.Leave(m.Class)
	if m.Delayed {
		k.delayed--
	}
}

// Members is how many connections have something to send.
func (k *Link) Members() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.members)
}

// Rate is the device's, in bytes per second.
func (k *Link) Rate() float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rate
}

// Target is what a connection of a class should get, in bytes per second.
func (k *Link) Target(c qtcp.Class) float64 {
	rate, _ := k.Aim(c)
	return rate
}

// Aim is that with the weight by which its window grows.
func (k *Link) Aim(c qtcp.Class) (rate, weight float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.device.Target(c), k.device.Weight(c)
}

// Allowance is what a connection of a class may have at most, in bytes per second, so that
// together they have what the device carries and each its part; what some do not want others
// have. now is in ns.
func (k *Link) Allowance(c qtcp.Class, now int64) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now >= k.levelDue {
		k.levelDue = now + levelEvery
		k.demands = k.demands[:0]
		for m := range k.members {
			k.demands = append(k.demands, qrdma.Demand{Share: k.device.Share(m.Class), Measured: float64(m.Measured.Load()), Late: m.Late.Load()})
		}
		k.level.Update(k.demands)
	}
	return k.level.Allowance(k.device.Share(c))
}

// Capacity is what Allowance divides, in bytes per second.
func (k *Link) Capacity() float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.level.Capacity()
}

// Holds reports whether members that see congestion by round trips have to hold back at now, in
// ns.
func (k *Link) Holds(now int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.drain.Holds(now, k.delayed, func() (longest int64) {
		for m := range k.members {
			if m.Delayed {
				m.held, longest = now, max(longest, m.Trip.Load())
			}
		}
		return longest
	})
}

// Estimate is what the bottleneck is taken to carry, in bytes per second.
func (k *Link) Estimate() float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.device.Estimate()
}

// Observe corrects the estimate every qtcp.EstimateEvery round trips, by the rates of all. now
// and the round trip rtt of who calls are in ns.
func (k *Link) Observe(now, rtt int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now < k.due {
		return
	}
	k.due = now + qtcp.EstimateEvery*rtt
	sum, slow := int64(0), false
	for m := range k.members {
		sum += m.Measured.Load()
		slow = slow || m.Slow.Load()
	}
	k.device.Observe(float64(sum), slow)
}
