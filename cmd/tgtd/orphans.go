package main

import (
	"fmt"

	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/arena"
)

// unwritten is what there is of volumes that are not open.
type unwritten interface {
	Unwritten() []tier.Orphan
	Discard(id uint64) (lost int64, err error)
}

// kept is the cache, or in a rehearsal what it would have; nil: there is none.
func (a *assembly) kept() unwritten {
	switch {
	case a.rehearsal != nil:
		return a.rehearsal
	case a.daemon.cache != nil:
		return a.daemon.cache
	}
	return nil
}

// seekOrphans finds unwritten data in the cache that are this volume's or its store's,
// but would not get there: the volume has another name, serial, path or no cache now, or
// another store.
func (a *assembly) seekOrphans(v *conf.Volume, p *sighting) {
	kept := a.kept()
	if kept == nil {
		return
	}
	for _, o := range kept.Unwritten() {
		store := a.left.volumes[o.ID]
		if a.daemon.note != nil {
			store = a.daemon.orphanStore(o.ID)
		}
		own := o.ID == a.volumeID(v)
		replaced := p.Recorded != nil && !p.Found.Identity.Same(p.Recorded.Identity)
		if own && v.Cache != nil && p.Intention != evidence.Forget && (!replaced || p.Intention == evidence.Adopt) {
			continue // the cache decides when it has the store
		}
		if !own && o.Name != v.Name && o.Medium != p.Found.Identity.Medium() && !sameStore(p.Path, store) {
			continue
		}
		p.orphans = append(p.orphans, o)
		p.Kept.Dirty += o.Bytes
		p.Kept.Of = fmt.Sprintf("for %s, from when it was volume %q,", store, o.Name)
	}
}

// intend does with such data what an administrator has said.
func (a *assembly) intend(v *conf.Volume, p *sighting) error {
	switch {
	case len(p.orphans) == 0 || p.Intention == evidence.None:
		return nil
	case p.Intention == evidence.Forget:
		return a.discard(v, p.orphans)
	case v.Cache == nil:
		return fmt.Errorf("found %s of unwritten data for it in the cache, which only a volume with a cache can get", arena.Bytes(p.Kept.Dirty))
	case len(p.orphans) > 1:
		return fmt.Errorf("found unwritten data of %d volumes for it in the cache: expected those of one", len(p.orphans))
	}
	a.aliases.Store(v.Name, alias{Of: volumeID(v, a.identity), Is: p.orphans[0].ID})
	return nil
}

func (a *assembly) discard(v *conf.Volume, orphans []tier.Orphan) error {
	for _, o := range orphans {
		lost, err := a.kept().Discard(o.ID)
		if err == nil {
			a.log.Warn("unwritten data are given up", "volume", v.Name, "of", o.Name, "lost", lost)
			err = a.daemon.forgetOrphan(o.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aliasOf returns the alias of a volume that goes on by another identity; nil: it has
// none.
func (a *assembly) aliasOf(v *conf.Volume) *alias {
	found, ok := a.aliases.Load(v.Name)
	if !ok {
		return nil
	}
	o := found.(alias)
	if o.Of != volumeID(v, a.identity) {
		return nil // its path or serial has changed again
	}
	return &o
}
