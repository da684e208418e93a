package daemon

import (
	"fmt"

	"lunar/backstore/crypt"
	"lunar/conf"
)

// changeKeys wraps the keys of volumes that are open with other key files. Undoing
// the reopening of a volume needs the old key file, so a volume is not reopened and
// wrapped in one change.
func (c *change) changeKeys() error {
	a := c.daemon.assembly
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		was := c.old.Volume(now.Name)
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
