package daemon

import (
	"errors"
	"fmt"

	"lunar/conf"
	"lunar/daemon/medium"
)

// confused refuses files and devices that two volumes have, or a volume by another name.
func (c *change) confused() error {
	if err := medium.StoredTwice(c.cfg); err != nil {
		return err
	}
	errs := []error{c.clustered(), c.unable()}
	fresh := missingIn(c.old, c.cfg)
	before := renamed(fresh, missingIn(c.cfg, c.old), medium.KeyOf)
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
	c.daemon.assembly.Next = c.cfg
	defer func() { c.daemon.assembly.Next = nil }()
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
	for _, v := range c.added {
		added = append(added, *v)
	}
	c.undo = append(c.undo, func() error { return c.daemon.Unnote(added) })
	if err := c.daemon.NoteVolumes(added); err != nil {
		return err
	}
	for i := range added {
		c.undo = append(c.undo, c.daemon.assembly.KeepRecord(&added[i]))
	}
	return c.daemon.assembly.NoteStores(added)
}

// openVolume opens a volume that is new.
func (c *change) openVolume(v *conf.Volume) error {
	if busy := c.beingClosed(v); busy != "" {
		return fmt.Errorf("volume %s: volume %s of the same name or store is still being closed; apply again when it is", v.Name, busy)
	}
	c.undo = append(c.undo, c.daemon.assembly.MissingOf(v))
	lu, err := c.daemon.assembly.OpenVolume(v)
	if err != nil {
		c.daemon.Health.Forget(v.Name)
		return err
	}
	c.added = append(c.added, v)
	c.undo = append(c.undo, func() error {
		delete(c.daemon.assembly.Open, v.Name)
		c.daemon.Unshare(v.Name)
		c.daemon.Health.Forget(v.Name)
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
func renamed(fresh, gone []*conf.Volume, key func(string) (medium.Key, bool)) map[string]string {
	out := map[string]string{}
	if len(gone) == 0 {
		return out
	}
	before := medium.ByStore(gone, key)
	for _, v := range fresh {
		if k, ok := key(medium.Path(v)); ok && len(before[k]) > 0 {
			out[v.Name] = before[k][0].Name
		}
	}
	return out
}
