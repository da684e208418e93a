package daemon

import (
	"maps"

	"lunar/conf"
	"lunar/target"
)

// startCapacities are what the scheduler starts from, by device: what the
// configuration says, or what was measured; 0: neither.
func (q *qos) startCapacities() map[string]int64 {
	all := q.devices.Capacities(q.cfg)
	for device, tokens := range all {
		if tokens == 0 {
			all[device] = q.measured[device]
		}
	}
	return all
}

// capacities returns the capacities for admission, in tokens/s by device: the
// configured one, or the measured one as the scheduler has followed it since. A
// capacity that is only learnt counts as 0, unknown: nobody may have asked for all
// of it.
func (q *qos) capacities(s *target.Server) map[string]int64 {
	configured, all := q.devices.Capacities(q.cfg), q.startCapacities()
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
	for _, device := range q.devices.Of(cfg) {
		left[device] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all := maps.Clone(q.measured)
	maps.DeleteFunc(all, func(device string, _ int64) bool { return !left[device] })
	q.measured = all
}
