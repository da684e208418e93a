package daemon

import (
	"lunar/conf"
	"lunar/daemon/medium"
)

// measure finds out what those devices can do on which the first volumes come,
// if devices are to be measured and the configuration does not say it.
func (c *change) measure() error {
	if c.cfg.QoS.Profile == 0 {
		return nil
	}
	used, configured := map[string]bool{}, c.daemon.qos.devices.Capacities(c.cfg)
	for _, device := range c.daemon.qos.devices.Of(c.old) {
		used[device] = true
	}
	var volumes []conf.Volume
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		device := medium.DeviceOf(v)
		if c.old.Volume(v.Name) != nil || used[device] || configured[device] > 0 || c.beingClosed(v) != "" {
			continue
		}
		c.undo = append(c.undo, medium.MissingOf(v).Restore)
		volumes = append(volumes, *v)
	}
	if len(volumes) == 0 {
		return nil
	}
	c.undo = append(c.undo, func() error { c.daemon.qos.keepMeasured(c.old); return nil })
	c.daemon.qos.addMeasured(measureDevices(c.cfg, volumes, c.log))
	return nil
}
