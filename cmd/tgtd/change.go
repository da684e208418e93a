package main

import (
	"errors"
	"fmt"
	"reflect"

	"lunar/conf"
	"lunar/target"
	"lunar/target/scsi"
)

// change puts a configuration into force: first everything that can fail, which
// is undone if something does, then everything that cannot.
type change struct {
	*applier
	old, cfg *conf.Config
	plan     conf.Plan
	sizes    resizes

	added    []*addition
	reopened map[string]bool // volumes that were opened anew
	portals  *target.PortalChange
	admitted outcome // of the QoS rules
	undo     []func() error
	did      []string // what is to be told besides the plan
}

// addition is a volume that was opened for a change.
type addition struct {
	volume *conf.Volume
	unit   *scsi.LogicalUnit
}

func (a *applier) newChange(cfg *conf.Config, plan conf.Plan) *change {
	c := &change{applier: a, old: a.daemon.config.Load(), cfg: cfg, plan: plan, reopened: map[string]bool{}}
	c.sizes = c.newSizes()
	return c
}

// make makes the change. After an error nothing has changed, unless the error
// says so.
func (c *change) make() error {
	for _, step := range []func() error{c.measure, c.openVolumes, c.moveServer, c.openPortals, c.changeRules, c.changeCaches, c.changeKeys, c.reopen, c.resize} {
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

// confused refuses files and devices that two volumes have, or a volume by another name.
func (c *change) confused() error {
	if err := storedTwice(c.cfg); err != nil {
		return err
	}
	var errs []error
	fresh := missingIn(c.old, c.cfg)
	before := renamed(fresh, missingIn(c.cfg, c.old), keyOfStore)
	for _, v := range fresh {
		if gone := before[v.Name]; gone != "" {
			errs = append(errs, fmt.Errorf("volume %s: found the file or device of volume %s, which is configured no more: a volume keeps its name while it is open. Its initiators would see another disk, unless serial and naa are given. Apply the configuration without either first, then with volume %s",
				v.Name, gone, v.Name))
		}
	}
	return errors.Join(errs...)
}

// openVolumes opens the volumes that are new, and reports all that cannot be
// opened.
func (c *change) openVolumes() error {
	var errs []error
	for _, v := range missingIn(c.old, c.cfg) {
		if err := c.openVolume(v); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 || len(c.added) == 0 {
		return errors.Join(errs...)
	}
	var added []conf.Volume
	for _, a := range c.added {
		added = append(added, *a.volume)
	}
	c.undo = append(c.undo, func() error { return c.daemon.unnote(added) })
	if err := c.daemon.noteVolumes(added); err != nil {
		return err
	}
	for i := range added {
		c.undo = append(c.undo, c.daemon.assembly.keepRecord(&added[i]))
	}
	return c.daemon.assembly.noteStores(added)
}

// openVolume opens a volume that is new.
func (c *change) openVolume(v *conf.Volume) error {
	if busy := c.beingClosed(v); busy != "" {
		return fmt.Errorf("volume %s: volume %s of the same name or store is still being closed; apply again when it is", v.Name, busy)
	}
	c.undo = append(c.undo, c.daemon.assembly.missingOf(v))
	lu, err := c.daemon.assembly.openVolume(v)
	if err != nil {
		return err
	}
	c.added = append(c.added, &addition{v, lu})
	c.undo = append(c.undo, func() error {
		delete(c.daemon.assembly.caches, v.Name)
		delete(c.daemon.assembly.ciphers, v.Name)
		return lu.Close()
	})
	return nil
}

// missingIn are the volumes of cfg that another configuration does not have.
func missingIn(other, cfg *conf.Config) (all []*conf.Volume) {
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; other.Volume(v.Name) == nil {
			all = append(all, v)
		}
	}
	return all
}

// renamed returns, for new volumes with the stores of others that are gone, these by
// their names.
func renamed(fresh, gone []*conf.Volume, key func(string) (storeKey, bool)) map[string]string {
	out := map[string]string{}
	if len(gone) == 0 {
		return out
	}
	before := byStore(gone, key)
	for _, v := range fresh {
		if k, ok := key(storePath(v)); ok && len(before[k]) > 0 {
			out[v.Name] = before[k][0].Name
		}
	}
	return out
}

func (c *change) openPortals() (err error) {
	if reflect.DeepEqual(c.old.PortalGroups, c.cfg.PortalGroups) {
		return nil
	}
	if err := c.daemon.changeISER(c.old, c.cfg, c.log); err != nil {
		return err
	}
	groups := portalGroupsOf(c.cfg, c.log)
	for i := range groups {
		if groups[i].Assisted, err = c.daemon.iserPortals(&c.cfg.PortalGroups[i]); err != nil {
			return err
		}
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
	before, admitted, err := put(c.cfg, configuredSet(&c.cfg.QoS))
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
	a.cfg = c.cfg
	c.changeServer()
	if config, err := serverConfig(c.cfg, a.topology, c.log); err == nil {
		c.ended("initiators of users, or discovery.auth", d.Reconfigure(config.Settings()))
	}
	for _, n := range c.added {
		a.units[n.volume.Name] = n.unit
		n.unit.Reconfigure(settingsOf(c.cfg, n.volume)) // it was opened when another configuration was in force
		d.AddLogicalUnit(n.unit, max(n.volume.Threads, 1))
	}
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
		c.did = append(c.did, fmt.Sprintf("%s: %d sessions were asked to log out", what, sessions))
	}
}
