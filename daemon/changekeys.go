package daemon

import (
	"errors"
	"fmt"
	"reflect"

	"lunar/backstore/crypt"
	"lunar/conf"
	"lunar/daemon/volumes"
)

// changeKeys wraps the keys of volumes that are open with other key files. Undoing
// the reopening of a volume needs the old key file, so a volume is not reopened and
// wrapped in one change.
func (c *change) changeKeys() error {
	a := c.daemon.assembly
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		was := c.old.Volume(now.Name)
		if was != nil && now.Clustered() && was.Clustered() {
			if err := c.reseal(was, now); err != nil {
				return fmt.Errorf("volume %s: %w", now.Name, err)
			}
			continue
		}
		if was == nil || was.Encryption == nil || now.Encryption == nil || was.Encryption.KeyFile == now.Encryption.KeyFile {
			continue
		}
		if a.Reopens(was, now) {
			return fmt.Errorf("volume %s: found another key-file, and other keys for which it has to be opened anew: apply one after the other", now.Name)
		}
		key, err := crypt.ReadKey(now.Encryption.KeyFile)
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		before, err := a.Open[now.Name].Cipher.Rewrap(key)
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		c.undo = append(c.undo, func() error { _, err := a.Open[now.Name].Cipher.Rewrap(before); return err })
		c.did = append(c.did, fmt.Sprintf("%s: the header %s has the new key: copy it again", conf.Key("volumes", now.Name, "encryption", "key-file"), now.Encryption.HeaderFile))
	}
	return nil
}

// reseal has a volume with owners go by other key files. Its owner wraps the header.
func (c *change) reseal(was, now *conf.Volume) error {
	if reflect.DeepEqual(was.Encryption, now.Encryption) {
		return nil
	}
	undo, err := c.daemon.SharedOf(now.Name).Reseal(now.Encryption)
	if err != nil {
		return err
	}
	c.undo = append(c.undo, undo)
	c.daemon.member.judgeAgain.Store(true)
	return nil
}

// unable refuses volumes with owners that are new, and new encryptions of others, which this node may
// own and could not open. What is in force already it only tells of.
func (c *change) unable() error {
	m := c.daemon.member
	if m == nil || !c.judging {
		return nil
	}
	headers := map[string][]byte{}
	if n := m.node.Load(); n != nil {
		s, err := n.Status()
		if err != nil {
			return err // it stops
		}
		headers = s.Headers
	}
	var errs []error
	lacking := map[string]bool{} // Ceph clusters, each of which is told of once
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		was := c.old.Volume(now.Name)
		if was == nil && now.OwnedBy(m.conf.Node) && !lacking[now.Ceph] {
			if err := c.daemon.assembly.Lacks(c.cfg, now); err != nil {
				errs = append(errs, fmt.Errorf("%s: node %s could not open the volume: %w", conf.Key("volumes", now.Name), m.conf.Node, err))
				lacking[now.Ceph] = true
			}
		}
		if !now.OwnedBy(m.conf.Node) || was != nil && reflect.DeepEqual(was.Encryption, now.Encryption) {
			continue
		}
		if err := volumes.Unwraps(now, headers[now.Name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: node %s could not open the volume: %w", conf.Key("volumes", now.Name, "encryption"), m.conf.Node, err))
		}
	}
	return errors.Join(errs...)
}
