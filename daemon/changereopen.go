package daemon

import (
	"fmt"
	"time"

	"lunar/conf"
)

// reopenings are the volumes that have to be opened anew.
func (c *change) reopenings() (all []*conf.Volume) {
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		if was := c.old.Volume(now.Name); was != nil && c.daemon.assembly.Reopens(was, now) {
			all = append(all, now)
		}
	}
	return all
}

// reopen opens volumes anew that can follow their keys in no other way. Commands
// of their initiators wait for some milliseconds.
func (c *change) reopen() error {
	for _, now := range c.reopenings() {
		was, lost := c.old.Volume(now.Name), c.daemon.assembly.Open[now.Name].Slot.Empty()
		ended := c.awaitsDirty(now.Name, c.daemon.assembly.Open[now.Name].Slot, "opened anew, once what runs of it has ended")
		pause, err := c.daemon.Reopen(c.life, c.daemon.Loops()[0], was, now)
		ended()
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		if lost {
			c.did = append(c.did, conf.Key("volumes", now.Name)+": it is served again")
		} else {
			c.did = append(c.did, fmt.Sprintf("%s: opened anew, commands waited for %v", conf.Key("volumes", now.Name), pause.Round(100*time.Microsecond)))
		}
		c.reopened[now.Name] = true
		c.undo = append(c.undo, func() error { _, err := c.daemon.Reopen(c.life, c.daemon.Loops()[0], now, was); return err })
	}
	return nil
}
