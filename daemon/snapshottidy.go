package daemon

import (
	"slices"

	"lunar/conf"
	"lunar/daemon/medium"
)

// tidySnapshots removes what a server that was killed has left of snapshots half-made.
func (a *applier) tidySnapshots() {
	served, all := a.served(), a.daemon.config.Load().Volumes
	for _, v := range all {
		_, of, err := a.imagesOf(v.Name)
		if err != nil {
			continue // it has none
		}
		err = of.Tidy(func(path string) bool {
			key, ok := medium.KeyOf(path)
			return ok && served[key] != "" || slices.ContainsFunc(all, func(o conf.Volume) bool { return o.Image == path || o.ProtectionFile == path })
		})
		if err != nil {
			a.log.Warn("what a snapshot or clone has left half-made is still there", "volume", v.Name, "err", err)
		}
	}
}
