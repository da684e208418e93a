package scheduler

import (
	"maps"

	"lunar/scheduler/haechi"
)

// backing is what the coordinator knows of a device.
type backing struct {
	device    *Device
	monitor   *haechi.Monitor
	number    int64   // of all that the coordinator has made
	foreign   bool    // another coordinator has the monitor
	told      int64   // the capacity that it has told; 0: it has not
	total     int64   // tokens that all servers have served
	users     int64   // servers that a member has
	up        int     // its place in the report to the coordinator above
	contended int     // intervals for which reservations of nodes need its order
	window    int64   // of a node, millionths; 0: as configured
	reserved  int64   // of the period, tokens
	loaded    bool    // commands waited for it in this period
	full      bool    // loaded in the last period
	throttled bool    // in an interval of it limits let less pass than it can do
	history   []int64 // the capacity in the last periods, the newest last
	gone      bool    // no volume is on it
}

// capacityHistory is how many periods' capacities are remembered.
const capacityHistory = 300

// initiators is the one client of a device's monitor: all that use it.
const initiators = 0

// backing finds or makes what is known of a device.
func (c *Coordinator) backing(d *Device) *backing {
	b := c.byDevice[d]
	if b == nil {
		config := c.config.Monitor
		config.Pool = &d.Pool
		if profile, found := c.config.Profiles[d.Name]; found {
			config.Estimator.Profile = profile
		}
		c.made++
		b = &backing{device: d, monitor: haechi.NewMonitor(config), number: c.made, foreign: c.config.Foreign != nil && c.config.Foreign(d.Name)}
		b.monitor.Join(0)
		if c.started {
			b.monitor.BeginPeriod(c.began)
		}
		c.byDevice[d] = b
		c.devices = append(c.devices, b)
	}
	return b
}

// SetProfiles replaces the capacities to start from. A device of which another
// one was given before starts anew from this; one that is not named keeps what
// it has.
func (c *Coordinator) SetProfiles(profiles map[string]int64) {
	c.config.Profiles = maps.Clone(profiles)
	for _, b := range c.devices {
		if profile, found := profiles[b.device.Name]; found {
			b.monitor.Estimator().SetProfile(profile)
		}
	}
}

// Monitor is a device's monitor.
func (c *Coordinator) Monitor(d *Device) *haechi.Monitor { return c.backing(d).monitor }

// DeviceStatus is what a device can do, in tokens per period.
type DeviceStatus struct {
	Name     string
	Capacity int64   // 0: not known yet
	Reserved int64   // of this period
	Full     bool    // commands waited for it in this period or the last
	History  []int64 // Capacity in the last periods, the newest last
}

// Status says what a device can do.
func (c *Coordinator) Status(d *Device) DeviceStatus {
	b := c.backing(d)
	return DeviceStatus{Name: d.Name, Capacity: b.capacity(), Reserved: b.reserved, Full: b.full || b.loaded, History: append([]int64{}, b.history...)}
}

// Forget drops what is known of a device that no volume is on any more, once no
// server is left of it.
func (c *Coordinator) Forget(d *Device) {
	if b := c.byDevice[d]; b != nil {
		b.gone = true
		c.removeDevices()
	}
}

func (c *Coordinator) removeDevices() {
	used := map[*backing]bool{}
	for _, s := range c.servers {
		used[s.backing] = true
	}
	kept := c.devices[:0]
	for _, b := range c.devices {
		if b.gone && !used[b] {
			delete(c.byDevice, b.device)
			continue
		}
		kept = append(kept, b)
	}
	clear(c.devices[len(kept):])
	c.devices = kept
}

// begin starts a period: what its pool gets is what is not reserved.
func (b *backing) begin(now int64) {
	if !b.foreign {
		b.monitor.SetReservation(initiators, b.reserved)
		b.monitor.BeginPeriod(now)
	}
	b.full, b.loaded, b.throttled = b.loaded, false, false
	if len(b.history) == capacityHistory {
		b.history = b.history[:copy(b.history, b.history[1:])]
	}
	b.history = append(b.history, b.capacity())
}

// capacity is what the device can do, tokens per period; 0: not known.
func (b *backing) capacity() int64 {
	if b.foreign {
		return b.told
	}
	return b.monitor.Capacity()
}

// hear learns the capacity that a node knows: of a device that is the node's alone, or of
// one that this coordinator knows nothing of yet.
func (b *backing) hear(r *ServerReport) {
	switch {
	case r.Capacity == 0:
	case b.foreign:
		b.told = r.Capacity
	case b.monitor.Capacity() == 0:
		b.monitor.Estimator().Resume(r.Capacity)
	}
}
