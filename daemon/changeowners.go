package daemon

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"lunar/conf"
)

// clustered refuses what a volume with owners cannot follow while it is in use.
func (c *change) clustered() error {
	var errs []error
	if m := c.daemon.member; m != nil {
		own := m.self(c.cfg)
		errs = append(errs, m.known.Load().clash(m.conf.Node, &own), own.fits())
	}
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		was := c.old.Volume(now.Name)
		switch {
		case was == nil:
		case was.Clustered() != now.Clustered():
			errs = append(errs, fmt.Errorf("volumes.%s.owners: a volume becomes the cluster's, or one server's alone, by a restart", now.Name))
		case now.Clustered() && !reflect.DeepEqual(was.Cache, now.Cache):
			errs = append(errs, fmt.Errorf("volumes.%s.cache: that of a volume with owners changes by a restart: drain the node first (lunar cluster drain)", now.Name))
		}
	}
	return errors.Join(errs...)
}

// changeOwners has the node decide about volumes that are new, and by new owners.
func (c *change) changeOwners() {
	m := c.daemon.member
	if m == nil {
		return
	}
	own := m.self(c.cfg)
	m.own.Store(&own)
	m.look()
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		if !v.Clustered() {
			continue
		}
		open, was := c.daemon.SharedOf(v.Name), c.old.Volume(v.Name)
		var err error
		switch {
		case was == nil:
			err = m.add(v, open, c.joint)
		case !reflect.DeepEqual(was.Owners, v.Owners) || was.Failback != v.Failback:
			err = m.node.Load().Change(v.Name, m.volume(v, open, c.joint))
		}
		if err != nil { // it stops
			c.did = append(c.did, fmt.Sprintf("%s: %v", conf.Key("volumes", v.Name), err))
		}
	}
}

// disown gives a volume that is configured no more to another node, or to none.
func (a *applier) disown(v *conf.Volume) {
	open := a.daemon.SharedOf(v.Name)
	if open == nil {
		return
	}
	ctx, cancel := context.WithTimeout(a.life, leaveTime)
	defer cancel()
	if err := errors.Join(a.daemon.member.node.Load().Remove(ctx, v.Name), open.End()); err != nil {
		a.log.Warn("a volume was not given to another node in order", "volume", v.Name, "err", err)
	}
	a.daemon.Unshare(v.Name)
}
