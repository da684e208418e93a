package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/arena"
	"lunar/internal/numa"
	"lunar/internal/refusals"
	"lunar/target"
)

// daemon is the server with what outlives its volumes.
type daemon struct {
	*target.Server
	cache  *tier.Cache  // nil: none
	note   *segmentNote // nil: nothing was noted; changed under noting
	qos    *qos         // rules of the token scheduler
	rdma   rdma
	health *health

	refusals *refusals.Counters
	gone     sync.Mutex // held from when the cache's memory is being given up

	noting   sync.Mutex
	config   atomic.Pointer[conf.Config] // that is running
	file     atomic.Pointer[conf.Config] // of the file that the server was started with, as it was read last
	assembly *assembly                   // of what is running; whoever changes it holds applier.changing
	output   *output                     // of the log; nil: it cannot change
}

// Shutdown ends the server, whose volumes write what the cache still holds of
// them, and then gives up the cache. What could not be written stays in the
// segment, and is noted.
func (d *daemon) Shutdown(ctx context.Context) error {
	err := d.Server.Shutdown(ctx)
	if d.cache == nil {
		return err
	}
	d.gone.Lock() // for good: see unwritten
	err = errors.Join(err, d.cache.Close())
	d.noting.Lock()
	defer d.noting.Unlock()
	if err == nil && d.note != nil {
		err = d.note.forgetOpen()
	}
	return err
}

// unwritten is how many dirty bytes the cache has, 0 when it has been given up.
func (d *daemon) unwritten() int64 {
	if d.cache == nil || !d.gone.TryLock() {
		return 0
	}
	defer d.gone.Unlock()
	return int64(d.cache.Stats().DirtyBytes)
}

// spareVolumes is how many volumes more than at the start the cache can have.
const spareVolumes = 64

// cacheOptions are the configuration's cache on this machine.
func cacheOptions(cfg *conf.Config, topology numa.Topology, identity string) (tier.Options, error) {
	usable, err := usableMemory("/")
	if err != nil {
		return tier.Options{}, err
	}
	size, err := cacheSizeOf(cfg, len(topology.Nodes), usable)
	if err != nil {
		return tier.Options{}, reported(err)
	}
	huge, err := arena.ParseHuge(cfg.Cache.Huge)
	return tier.Options{
		Topology: topology, PerNode: size.perNode, BlockSize: int(cfg.Cache.BlockSize), Volumes: len(cfg.Volumes) + spareVolumes, Huge: huge,
		Segment: segmentPath(cfg.Cache.Segment, identity), Identity: identity, Build: version,
		DirtyLimit: size.dirtyLimit, ForwardThreshold: int64(cfg.Cache.ForwardThreshold), Checksum: cfg.Cache.Checksum,
	}, err
}

// openCache makes the block cache, if there is to be one, and takes over what a
// server before this one left in its segment.
func (a *assembly) openCache() error {
	var err error
	if a.left, err = readNote(a.stateDir); err != nil {
		return err
	}
	var o tier.Options
	if a.cfg.Cache.Size.Given() {
		if o, err = cacheOptions(a.cfg, a.topology, a.identity); err != nil {
			return err
		}
	}
	if err := a.left.checkLeftover(o.Segment, a.log); err != nil {
		return err
	}
	if err := a.rehearse(o); err != nil || !a.cfg.Cache.Size.Given() {
		return err
	}
	if o.Segment != "" {
		if err := makeSegmentDir(a.cfg.Cache.Segment); err != nil {
			return err
		}
		warnOfContainer(a.cfg.Cache.Segment, a.log)
	}
	o.Logger, o.Progress = a.log, cacheProgress(a.log)
	a.cacheSize = conf.Size(o.PerNode * int64(len(a.topology.Nodes)))
	a.daemon.cache, err = tier.Open(o)
	return err
}

// cached puts a volume's store behind the cache when the configuration says
// so; store is owned, also on failure.
func (a *assembly) cached(v *conf.Volume, store backstore.Store, seen sighting, failing *deferral) (backstore.Store, error) {
	if v.Cache == nil || a.daemon.cache == nil {
		return store, nil
	}
	c := a.cacheChangesOf(v)
	wrapped, err := a.daemon.cache.Wrap(store, tier.VolumeConfig{
		ID: a.volumeID(v), Name: v.Name, Policy: c.Policy, Adopt: seen.Intention == evidence.Adopt, Admission: v.Cache.Admission,
		Min: c.Min, Max: c.Max, ReadAhead: int64(v.Cache.ReadAhead),
		Age: c.Age, DirtyLimit: c.DirtyLimit, OnFlushError: failing.report,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return wrapped, nil
}

// meeting has the cache judge the store of a volume before it is changed.
func (a *assembly) meeting(v *conf.Volume, seen sighting) func(backstore.Watched) error {
	if v.Cache == nil || a.daemon.cache == nil {
		return nil
	}
	return func(store backstore.Watched) error {
		return a.daemon.cache.Meet(a.volumeID(v), seen.Intention == evidence.Adopt, v.Encryption != nil, store)
	}
}

// settleCache is called when all volumes are open. It refuses to serve the store
// of a volume whose unwritten data the cache keeps under another identity: it
// would be served without them, and damaged by them later.
func (a *assembly) settleCache() error {
	if a.daemon.cache == nil || a.cfg.Cache.Segment == "" {
		return nil
	}
	fresh := &segmentNote{stateDir: a.stateDir, path: segmentPath(a.cfg.Cache.Segment, a.identity), volumes: map[uint64]string{}}
	orphans := a.daemon.cache.Settle()
	for _, o := range orphans {
		fresh.orphans = append(fresh.orphans, o.ID)
		fresh.volumes[o.ID] = a.left.volumes[o.ID]
	}
	if errs := a.strays(orphans); len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, v := range a.cfg.Volumes {
		if v.Cache != nil && v.Write == conf.WriteBack {
			fresh.volumes[a.volumeID(&v)] = storePath(&v)
			a.log.Info("volume writes back: acknowledged writes outlive tgtd, but a power cut loses what initiators have not flushed", "volume", v.Name)
		}
	}
	a.daemon.note = fresh
	return fresh.write()
}

// strays says why what the cache has of volumes that are not open must not stay there.
func (a *assembly) strays(orphans []tier.Orphan) (errs []error) {
	served := a.servedFor(orphans)
	for _, o := range orphans {
		if err := a.forgets(o.Name, o.Bytes); err != nil {
			errs = append(errs, err)
		}
		key, _ := keyOfStore(a.left.volumes[o.ID])
		for _, v := range served[key] {
			errs = append(errs, fmt.Errorf("volume %s: found %s of unwritten data for %s in the cache, from when it was volume %q; give it back its name, serial, cache and segment, start and stop in order once, then change them",
				v.Name, arena.Bytes(o.Bytes), storePath(v), o.Name))
		}
	}
	return errs
}

// servedFor are the volumes by their stores, if there is somebody to look for them.
func (a *assembly) servedFor(orphans []tier.Orphan) map[storeKey][]*conf.Volume {
	if len(orphans) == 0 {
		return nil
	}
	var all []*conf.Volume
	for i := range a.cfg.Volumes {
		all = append(all, &a.cfg.Volumes[i])
	}
	return byStore(all, keyOfStore)
}
