package volumes

import (
	"fmt"

	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/bytesize"
)

// unwritten is the unwritten data of volumes that are not open.
type unwritten interface {
	Unwritten() []tier.Orphan
	Discard(id uint64) (lost int64, err error)
}

// orphans returns the cache, or in a rehearsal a stand-in for it; nil: there is none.
func (a *Set) orphans() unwritten {
	switch {
	case a.rehearsal != nil:
		return a.rehearsal
	case a.Cache != nil:
		return a.Cache
	}
	return nil
}

// seekOrphans finds unwritten data in the cache that are this volume's or its store's,
// but would not get there: the volume has another name, serial, path or no cache now, or
// another store.
func (a *Set) seekOrphans(v *conf.Volume, p *sighting) {
	kept := a.orphans()
	if kept == nil {
		return
	}
	for _, o := range kept.Unwritten() {
		store := a.left.Volumes[o.ID]
		if a.note != nil {
			store = a.OrphanStore(o.ID)
		}
		own := o.ID == a.volumeID(v)
		replaced := p.Recorded != nil && !p.Found.Identity.Same(p.Recorded.Identity)
		if own && v.Cache != nil && p.Intention != evidence.Forget && (!replaced || p.Intention == evidence.Adopt) {
			continue // the cache decides when it has the store
		}
		if !own && o.Name != v.Name && o.Medium != p.Found.Identity.Medium() && !medium.Same(p.Path, store) {
			continue
		}
		p.orphans = append(p.orphans, o)
		p.Pending.Dirty += o.Bytes
		p.Pending.Of = fmt.Sprintf("for %s, from when it was volume %q,", store, o.Name)
	}
}

// intend does with such data what an administrator has said.
func (a *Set) intend(v *conf.Volume, p *sighting) error {
	switch {
	case len(p.orphans) == 0 || p.Intention == evidence.None:
		return nil
	case p.Intention == evidence.Forget:
		return a.discard(v, p.orphans)
	case v.Cache == nil:
		return fmt.Errorf("found %s of unwritten data for it in the cache, which only a volume with a cache can get", bytesize.Text(p.Pending.Dirty))
	case len(p.orphans) > 1:
		return fmt.Errorf("found unwritten data of %d volumes for it in the cache: expected those of one", len(p.orphans))
	}
	a.aliases.Store(v.Name, state.Alias{Of: volumeID(v, a.Identity), Is: p.orphans[0].ID})
	return nil
}

func (a *Set) discard(v *conf.Volume, orphans []tier.Orphan) error {
	for _, o := range orphans {
		lost, err := a.orphans().Discard(o.ID)
		if err == nil {
			a.Log.Warn("unwritten data are given up", "volume", v.Name, "of", o.Name, "lost", lost)
			err = a.ForgetOrphan(o.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
