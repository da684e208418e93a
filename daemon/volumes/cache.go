package volumes

import (
	"errors"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/machine"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/arena"
	"lunar/internal/numa"
	"lunar/internal/version"
)

// spareVolumes is how many volumes more than at the start the cache can have.
const spareVolumes = 64

// CacheOptions are the configuration's cache on this machine.
func CacheOptions(cfg *conf.Config, topology numa.Topology, identity string) (tier.Options, error) {
	usable, err := machine.UsableMemory("/")
	if err != nil {
		return tier.Options{}, err
	}
	size, err := cacheSizeOf(cfg, len(topology.Nodes), usable)
	if err != nil {
		return tier.Options{}, conf.Reported(err)
	}
	huge, err := arena.ParseHuge(cfg.Cache.Huge)
	return tier.Options{
		Topology: topology, PerNode: size.perNode, BlockSize: int(cfg.Cache.BlockSize), Volumes: len(cfg.Volumes) + spareVolumes, Huge: huge,
		Segment: machine.SegmentPath(cfg.Cache.Segment, identity), Identity: identity, Build: version.Number,
		DirtyLimit: size.dirtyLimit, ForwardThreshold: int64(cfg.Cache.ForwardThreshold), Checksum: cfg.Cache.Checksum,
	}, err
}

// OpenCache makes the block cache, if there is to be one, and takes over what a
// server before this one left in its segment.
func (a *Set) OpenCache() error {
	var err error
	if a.left, err = state.ReadSegmentNote(a.StateDir); err != nil {
		return err
	}
	var o tier.Options
	if a.Conf.Cache.Size.Given() {
		if o, err = CacheOptions(a.Conf, a.Topology, a.Identity); err != nil {
			return err
		}
	}
	if err := CheckLeftover(&a.left, o.Segment, a.Log); err != nil {
		return err
	}
	o.Logger = a.Log
	if err := a.rehearse(o); err != nil || !a.Conf.Cache.Size.Given() {
		return err
	}
	if o.Segment != "" {
		if err := machine.MakeSegmentDir(a.Conf.Cache.Segment); err != nil {
			return err
		}
		machine.WarnOfContainer(a.Conf.Cache.Segment, a.Log)
	}
	o.Progress = cacheProgress(a.Log)
	a.CacheSize = conf.Size(o.PerNode * int64(len(a.Topology.Nodes)))
	a.Cache, err = tier.Open(o)
	return err
}

// cached puts a volume's store behind the cache when the configuration says
// so; store is owned, also on failure.
func (a *Set) cached(v *conf.Volume, store backstore.Store, seen sighting, failing *deferral) (backstore.Store, error) {
	if v.Cache == nil || a.Cache == nil {
		return store, nil
	}
	return a.wrap(store, a.cacheConfig(v, seen, failing))
}

// cacheConfig is what the cache does for a volume that is behind it.
func (a *Set) cacheConfig(v *conf.Volume, seen sighting, failing *deferral) tier.VolumeConfig {
	c := a.CacheChangesOf(v)
	return tier.VolumeConfig{
		ID: a.volumeID(v), Name: v.Name, Policy: c.Policy, Adopt: seen.Intention == evidence.Adopt, Admission: v.Cache.Admission,
		Min: c.Min, Max: c.Max, ReadAhead: int64(v.Cache.ReadAhead),
		Age: c.Age, DirtyLimit: c.DirtyLimit, OnFlushError: failing.report,
	}
}

// wrap puts a store behind the cache; it is owned, also on failure.
func (a *Set) wrap(store backstore.Store, c tier.VolumeConfig) (backstore.Store, error) {
	wrapped, err := a.Cache.Wrap(store, c)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return wrapped, nil
}

// meeting has the cache judge the store of a volume before it is changed.
func (a *Set) meeting(v *conf.Volume, seen sighting) func(backstore.Watched) error {
	if v.Cache == nil || a.Cache == nil {
		return nil
	}
	return func(store backstore.Watched) error {
		return a.Cache.Meet(a.volumeID(v), seen.Intention == evidence.Adopt, v.Encryption != nil, store)
	}
}

// SettleCache is called when all volumes are open. It refuses to serve the store
// of a volume whose unwritten data the cache keeps under another identity: it
// would be served without them, and damaged by them later.
func (a *Set) SettleCache() error {
	if a.Cache == nil || a.Conf.Cache.Segment == "" {
		return nil
	}
	fresh := &state.SegmentNote{StateDir: a.StateDir, Path: machine.SegmentPath(a.Conf.Cache.Segment, a.Identity), Volumes: map[uint64]string{}}
	orphans := a.Cache.Settle()
	for _, o := range orphans {
		fresh.Orphans = append(fresh.Orphans, o.ID)
		fresh.Volumes[o.ID] = a.left.Volumes[o.ID]
	}
	if errs := a.strays(orphans); len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, v := range a.Conf.Volumes {
		if v.Cache != nil && v.Write == conf.WriteBack {
			fresh.Volumes[a.volumeID(&v)] = medium.Path(&v)
			a.Log.Info("volume writes back: acknowledged writes outlive tgtd, but a power cut loses data that initiators have not flushed", "volume", v.Name)
		}
	}
	a.note = fresh
	return fresh.Write()
}

// SealState rewrites the files of an older version. This one has the cache segment by
// then: where it is refused, the older one is to be started again, and must find them.
func (a *Set) SealState() error {
	_, err := state.ServerIdentity(a.StateDir)
	if err == nil && a.left.Old {
		err = a.left.Write()
	}
	return err
}

// CloseCache gives up the cache when all volumes are closed. Data that they could not
// write stay in the segment, which the note records.
func (a *Set) CloseCache() error {
	err := a.Cache.Close()
	a.noting.Lock()
	defer a.noting.Unlock()
	if err == nil && a.note != nil {
		err = a.note.ForgetOpen()
	}
	return err
}
