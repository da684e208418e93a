package main

import (
	"maps"

	"lunar/conf"
	"lunar/target"
)

// startCapacities are what the scheduler starts from, by device: what the
// configuration says, or what was measured; 0: neither.
func (q *qos) startCapacities() map[string]int64 {
	all := configuredCapacities(q.cfg)
	for device, tokens := range all {
		if tokens == 0 {
			all[device] = q.measured[device]
		}
	}
	return all
}

// capacities are what admission goes by, in tokens/s by device: what the
// configuration says, or what was measured and how the scheduler has followed it
// since. What is only learnt is no capacity, for nobody may have asked for all
// there is: 0.
func (q *qos) capacities(s *target.Server) map[string]int64 {
	configured, all := configuredCapacities(q.cfg), q.startCapacities()
	for _, d := range s.QoS("").Devices {
		if configured[d.Name] == 0 && all[d.Name] > 0 {
			all[d.Name] = d.Capacity
		}
	}
	return all
}

// addMeasured notes what devices can do that came while the server runs.
func (q *qos) addMeasured(found map[string]int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := maps.Clone(q.measured)
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, found)
	q.measured = all
}

// keepMeasured forgets what devices can do that no volume of a configuration is
// on: should they come again, they are measured again.
func (q *qos) keepMeasured(cfg *conf.Config) {
	left := map[string]bool{}
	for _, device := range devicesOf(cfg) {
		left[device] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all := maps.Clone(q.measured)
	maps.DeleteFunc(all, func(device string, _ int64) bool { return !left[device] })
	q.measured = all
}

// measure finds out what those devices can do on which the first volumes come,
// if devices are to be measured and the configuration does not say it.
func (c *change) measure() error {
	if c.cfg.QoS.Profile == 0 {
		return nil
	}
	used, configured := map[string]bool{}, configuredCapacities(c.cfg)
	for _, device := range devicesOf(c.old) {
		used[device] = true
	}
	var volumes []conf.Volume
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		device := deviceOf(v)
		if c.old.Volume(v.Name) != nil || used[device] || configured[device] > 0 || c.beingClosed(v) != "" {
			continue
		}
		c.undo = append(c.undo, missingOf(v).restore)
		volumes = append(volumes, *v)
	}
	if len(volumes) == 0 {
		return nil
	}
	c.undo = append(c.undo, func() error { c.daemon.qos.keepMeasured(c.old); return nil })
	c.daemon.qos.addMeasured(measureDevices(c.cfg, volumes, c.log))
	return nil
}
