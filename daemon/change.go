package daemon

import (
	"errors"
	"fmt"
	"reflect"

	"lunar/conf"
	"lunar/daemon/volumes"
)

func (a *applier) newChange(cfg *conf.Config, plan conf.Plan) *change {
	c := &change{applier: a, old: a.daemon.config.Load(), cfg: cfg, plan: plan, rules: configuredSet(&cfg.QoS), reopened: map[string]bool{}}
	c.sizes = c.newSizes()
	return c
}

// make makes the change. After an error nothing has changed, unless the error
// says so.
func (c *change) make() error {
	for _, step := range []func() error{c.measure, c.openVolumes, c.moveServer, c.moveAccess, c.openPortals, c.changeRules, c.changeCaches, c.writeFile, c.changeKeys, c.reopen, c.resize} {
		if err := step(); err != nil {
			return errors.Join(err, c.takeBack())
		}
	}
	c.commit()
	return nil
}

// takeBack undoes what was done, the last first.
func (c *change) takeBack() error {
	var errs []error
	for i := len(c.undo) - 1; i >= 0; i-- {
		errs = append(errs, c.undo[i]())
	}
	return errors.Join(errs...)
}

func (c *change) openPortals() (err error) {
	if reflect.DeepEqual(c.old.PortalGroups, c.cfg.PortalGroups) {
		return nil
	}
	if err := c.daemon.changeISER(c.old, c.cfg, c.log); err != nil {
		return err
	}
	groups, err := c.daemon.portalGroupsOf(c.cfg, c.log)
	if err != nil {
		return err
	}
	c.portals, err = c.daemon.PreparePortals(groups)
	if err != nil {
		for _, g := range c.cfg.PortalGroups {
			err = portalError(g, err)
		}
		return err
	}
	c.undo = append(c.undo, c.portals.Rollback)
	return nil
}

// changeRules puts the rules of the QoS into force.
func (c *change) changeRules() (err error) {
	put := func(cfg *conf.Config, rules ruleSet) (before ruleSet, o outcome, err error) {
		o, err = c.daemon.changeRulesFor(cfg, func(set *ruleSet) error {
			before, *set = *set, rules
			return nil
		})
		return before, o, err
	}
	before, admitted, err := put(c.cfg, c.rules)
	if err != nil {
		return err
	}
	c.admitted = admitted
	c.undo = append(c.undo, func() error { _, _, err := put(c.old, before); return err })
	return nil
}

// commit does what cannot fail.
func (c *change) commit() {
	d, a := c.daemon, c.daemon.assembly
	a.Conf = c.cfg
	c.changeServer()
	if config, err := serverConfig(c.cfg, a.Topology, c.log); err == nil {
		c.ended("initiators of users, or discovery.auth", d.Reconfigure(config.Settings()))
	}
	for _, v := range c.added {
		unit := a.Open[v.Name].Unit
		unit.Reconfigure(volumes.SettingsOf(c.cfg, v)) // it was opened when another configuration was in force
		d.AddLogicalUnit(unit, max(v.Threads, 1))
	}
	c.changeOwners()
	c.changeUnits()
	c.changeAccess()
	c.changeTargets()
	if c.portals != nil {
		c.ended("portal-groups", c.portals.Commit())
	}
	d.config.Store(c.cfg)
	d.qos.keepMeasured(c.cfg)
	c.closeVolumes()
}

// changeTargets makes the targets those of the configuration.
func (c *change) changeTargets() {
	a := c.daemon.assembly
	for i := range c.cfg.Targets {
		t := a.target(&c.cfg.Targets[i])
		was, there := a.targets[t.Name]
		var err error
		ended := 0
		switch {
		case !there:
			_, err = c.daemon.AddTarget(t)
		case !reflect.DeepEqual(was, t):
			ended, err = c.daemon.ChangeTarget(t)
		}
		if err != nil { // names are checked
			c.log.Error("target not changed", "target", t.Name, "err", err)
		}
		a.targets[t.Name] = t
		c.ended(conf.Key("targets", t.Name), ended)
	}
	for name := range a.targets {
		if c.cfg.Target(name) == nil {
			delete(a.targets, name)
			c.ended(conf.Key("targets", name), c.daemon.RemoveTarget(name))
		}
	}
}

// ended notes that sessions were asked to log out.
func (c *change) ended(what string, sessions int) {
	if sessions > 0 {
		c.did = append(c.did, fmt.Sprintf("%s: sessions asked to log out: %d", what, sessions))
	}
}
