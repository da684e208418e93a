package tcp

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"lunar/scheduler"
	"lunar/scheduler/qtcp"
)

// links are the network devices by which connections are governed that send through them.
type links struct {
	mu      sync.Mutex
	byName  map[string]*link
	devices map[netip.Addr]string // names of devices by local address

	kernel   kernel
	log      *slog.Logger
	fellBack sync.Once
}

// fallBack tells once that the kernel does not govern, for which the server then does.
func (l *links) fallBack(why error) {
	l.fellBack.Do(func() { l.log.Warn("the kernel does not govern connections: the server does", "err", why) })
}

// link is a network device with the bottleneck behind it. All event threads have one
// estimate of it: with one for each connection the shares are lost (package qtcp).
type link struct {
	name string

	mu      sync.Mutex
	rate    float64 // bytes per second
	device  qtcp.Device
	members map[*membership]struct{}
	due     int64 // when the estimate is corrected next
}

// membership is what a governed connection tells of itself.
type membership struct {
	class    qtcp.Class
	measured atomic.Int64 // bytes per second
	slow     atomic.Bool  // it is in slow start
}

// unknownRate is the rate of a device that tells none, in bytes per second: 10 Gbit/s.
const unknownRate = 1.25e9

// of is the link of a local address, with the rate that the configuration gives it.
func (l *links) of(local netip.Addr, n *scheduler.Network) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName, l.devices = map[string]*link{}, map[netip.Addr]string{}
	}
	name, known := l.devices[local]
	if !known {
		name = deviceOf(local)
		l.devices[local] = name
	}
	rate := float64(n.Links[name])
	if rate == 0 {
		rate = speedOf(name)
	}
	k := l.byName[name]
	if k == nil {
		k = &link{name: name, members: map[*membership]struct{}{}}
		l.byName[name] = k
	}
	k.setRate(rate)
	return k
}

// deviceOf is the name of the device that has an address; empty: none has.
func deviceOf(local netip.Addr) string {
	devices, _ := net.Interfaces() // without them the connection's link has no name
	for i := range devices {
		addrs, _ := devices[i].Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == local {
				return devices[i].Name
			}
		}
	}
	return ""
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
func (k *link) setRate(rate float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rate == rate {
		return
	}
	k.rate, k.device = rate, qtcp.NewDevice(rate, qtcp.DefaultRatios)
	for m := range k.members {
		k.device.Join(m.class)
	}
}

func (k *link) join(m *membership) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[m] = struct{}{}
	k.device.Join(m.class)
}

func (k *link) leave(m *membership) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, m)
	k.device.Leave(m.class)
}

// target is what a connection of a class should get, in bytes per second.
func (k *link) target(c qtcp.Class) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.device.Target(c)
}

// estimate is what the bottleneck is taken to carry, in bytes per second.
func (k *link) estimate() float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.device.Estimate()
}

// observe corrects the estimate every qtcp.EstimateEvery round trips, by the rates of all.
func (k *link) observe(now, rtt int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now < k.due {
		return
	}
	k.due = now + qtcp.EstimateEvery*rtt
	sum, slow := int64(0), false
	for m := range k.members {
		sum += m.measured.Load()
		slow = slow || m.slow.Load()
	}
	k.device.Observe(float64(sum), slow)
}
