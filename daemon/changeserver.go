package daemon

import (
	"lunar/internal/confine"
)

// moveServer puts into force of the server what may fail: where metrics are, and the
// congestion control of connections that come.
func (c *change) moveServer() error {
	was, now := &c.old.Server, &c.cfg.Server
	if was.Congestion != now.Congestion {
		if err := c.daemon.tcp.SetCongestion(congestionOf(now)); err != nil {
			return err
		}
		c.undo = append(c.undo, func() error { return c.daemon.tcp.SetCongestion(congestionOf(was)) })
	}
	if metricsOf(was) == metricsOf(now) || c.api == nil {
		return nil
	}
	if err := c.api.MoveMetrics(metricsOf(now)); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.api.MoveMetrics(metricsOf(was)) })
	return nil
}

// changeServer puts into force what cannot fail.
func (c *change) changeServer() {
	d, was, now := c.daemon, &c.old.Server, &c.cfg.Server
	if d.output != nil {
		d.output.set(c.cfg.Log)
	}
	limitMemory(c.cfg, len(d.Loops()), c.log)
	spareProcessors(now)
	if c.serve.Alone && was.CoreDumps != now.CoreDumps {
		if err := confine.CoreDumps(now.CoreDumps); err != nil {
			c.log.Warn("server.core-dumps stays as it is", "err", err)
		}
	}
	if poll := pollOf(now); pollOf(was) != poll {
		d.SetPoll(poll)
	}
	if threshold := c.cfg.Cache.ForwardThreshold; d.Cache != nil && threshold != c.old.Cache.ForwardThreshold {
		d.Cache.SetForwardThreshold(int64(threshold))
	}
}
