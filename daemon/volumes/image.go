package volumes

import (
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/backstore/rbd"
	"lunar/cache/tier"
	"lunar/conf"
)

// ImageConfig is how a volume's image is opened.
func ImageConfig(cfg *conf.Config, v *conf.Volume) (rbd.Config, error) {
	name, err := rbd.ParseName(v.Image)
	if err != nil {
		return rbd.Config{}, err
	}
	return rbd.Config{Account: accountOf(cfg, v), Image: name, BlockSize: v.BlockSize, ReadOnly: v.ReadOnly}, nil
}

func accountOf(cfg *conf.Config, v *conf.Volume) rbd.Account {
	k := cfg.CephCluster(v.Ceph)
	return rbd.Account{Config: k.Config, User: k.User, Keyring: k.KeyringFile}
}

// Lacks is what keeps this server from opening images of the Ceph cluster of a volume, as far as
// that is known without asking the cluster.
func (a *Set) Lacks(cfg *conf.Config, v *conf.Volume) error {
	if err := a.Ceph.Lacks(accountOf(cfg, v)); err != nil {
		return fmt.Errorf("ceph.%s: %w", v.Ceph, err)
	}
	return nil
}

// image opens the image of a volume in its Ceph cluster.
func (a *Set) image(v *conf.Volume) (backstore.Store, error) {
	cfg := a.Conf
	if a.Next != nil {
		cfg = a.Next
	}
	c, err := ImageConfig(cfg, v)
	if err != nil {
		return nil, err
	}
	c.Clients, c.Server, c.Logger, c.Before = a.Ceph, a.Identity, a.Log.With("volume", v.Name), a.meeting(v, sighting{})
	if resized := a.Resized; resized != nil {
		c.Resized = func() { resized(v.Name) }
	}
	store, err := rbd.Open(c)
	if errors.Is(err, tier.ErrChanged) {
		return nil, fmt.Errorf("%w. Nothing was written there; if nobody else has written to the image, rbd image-meta remove %s %s has the unwritten data written at the next start", err, c.Image, rbd.OwnerNote)
	}
	if err != nil {
		return nil, err
	}
	return store, nil
}
