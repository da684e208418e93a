package main

import (
	"context"
	"errors"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/target"
)

// daemon is the server with what outlives its volumes.
type daemon struct {
	*target.Server
	cache *tier.Cache // nil: none
}

// Shutdown ends the server, whose volumes write what the cache still holds of
// them, and then gives up the cache.
func (d *daemon) Shutdown(ctx context.Context) error {
	err := d.Server.Shutdown(ctx)
	if d.cache == nil {
		return err
	}
	return errors.Join(err, d.cache.Close())
}

// openCache makes the block cache, if there is to be one.
func (a *assembly) openCache() (err error) {
	if !a.cfg.Cache.Size.Given() {
		return nil
	}
	usable, err := usableMemory("/")
	if err != nil {
		return err
	}
	size, err := cacheSizeOf(a.cfg, len(a.topology.Nodes), usable)
	if err != nil {
		return err
	}
	a.daemon.cache, err = tier.Open(tier.Options{
		Topology: a.topology, PerNode: size.perNode, DirtyLimit: size.dirtyLimit, BlockSize: int(a.cfg.Cache.BlockSize),
		Volumes: len(a.cfg.Volumes), Logger: a.log,
	})
	return err
}

// policies maps the configuration's words to the cache's write policies.
var policies = map[conf.WritePolicy]tier.Policy{
	conf.WriteThrough: tier.Through, conf.WriteBack: tier.Back, conf.WriteSync: tier.Sync,
}

// cached puts a volume's store behind the cache when the configuration says
// so. number is the volume's among all; store is owned, also on failure.
func (a *assembly) cached(v *conf.Volume, number int, store backstore.Store) (backstore.Store, error) {
	if v.Cache == nil || a.daemon.cache == nil {
		return store, nil
	}
	if v.Write == conf.WriteBack { // see cache.segment
		return nil, errors.Join(errors.New("write: back is not possible yet, expected through or sync"), store.Close())
	}
	wrapped, err := a.daemon.cache.Wrap(store, tier.VolumeConfig{
		ID: uint64(number), Name: v.Name, Policy: policies[v.Write], Admission: v.Cache.Admission,
		Min: int64(v.Cache.Min), Max: int64(v.Cache.Max), ReadAhead: int64(v.Cache.ReadAhead),
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return wrapped, nil
}
