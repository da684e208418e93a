package volumes

import (
	"fmt"

	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/internal/bytesize"
)

// strays says why what the cache has of volumes that are not open must not stay there.
func (a *Set) strays(orphans []tier.Orphan) (errs []error) {
	served := a.servedFor(orphans)
	for _, o := range orphans {
		if err := a.Forgets(o.Name, o.Bytes); err != nil {
			errs = append(errs, err)
		}
		key, _ := medium.KeyOf(a.left.Volumes[o.ID])
		for _, v := range served[key] {
			errs = append(errs, fmt.Errorf("volume %s: found %s of unwritten data for %s in the cache, from when it was volume %q; give it back its name, serial, cache and segment, start and stop in order once, then change them",
				v.Name, bytesize.Text(o.Bytes), medium.Path(v), o.Name))
		}
	}
	return errs
}

// servedFor are the volumes by their stores, if there is somebody to look for them.
func (a *Set) servedFor(orphans []tier.Orphan) map[medium.Key][]*conf.Volume {
	if len(orphans) == 0 {
		return nil
	}
	var all []*conf.Volume
	for i := range a.Conf.Volumes {
		all = append(all, &a.Conf.Volumes[i])
	}
	return medium.ByStore(all, medium.KeyOf)
}
