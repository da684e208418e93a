package medium

import (
	"sync"

	"lunar/conf"
)

// Devices are those of a server's volumes. Each is looked at once, when its path comes:
// that takes several system calls, and a change asks for all of them several times. An
// open volume stays on the device that it was opened on. The zero value knows none; its
// methods may be called by any number of goroutines.
type Devices struct {
	mu sync.Mutex
	at map[string]string // by path
}

// Of are the devices of all volumes, by name of volume. Paths of other configurations are
// forgotten.
func (d *Devices) Of(cfg *conf.Config) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	devices, at := make(map[string]string, len(cfg.Volumes)), make(map[string]string, len(cfg.Volumes))
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		device, known := d.at[v.Path]
		if !known && v.Path != "" {
			device, known = deviceAt(v.Path)
		}
		if known {
			at[v.Path] = device
		} else {
			device = DeviceOf(v)
		}
		devices[v.Name] = device
	}
	d.at = at
	return devices
}

// Capacities are what the configuration says that each device can do, in tokens/s; 0:
// nothing. Of what it says of several volumes on one device the least counts.
func (d *Devices) Capacities(cfg *conf.Config) map[string]int64 {
	own, all := map[string]int64{}, map[string]int64{}
	for volume, device := range d.Of(cfg) {
		all[device] = cfg.QoS.Capacity
		if tokens := cfg.QoS.Capacities[volume]; tokens > 0 && (own[device] == 0 || tokens < own[device]) {
			own[device] = tokens
		}
	}
	for device, tokens := range own {
		all[device] = tokens
	}
	return all
}
