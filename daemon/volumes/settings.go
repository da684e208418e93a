package volumes

import (
	"slices"
	"time"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/bytesize"
	"lunar/target/scsi"
)

// SettingsOf are what a logical unit is told of its volume's configuration and can
// be told again.
func SettingsOf(cfg *conf.Config, v *conf.Volume) scsi.Settings {
	return scsi.Settings{
		WriteThrough: v.Write == conf.WriteSync, ReadOnly: v.ReadOnly,
		SanitizeRate: int64(v.SanitizeRate), SoftThreshold: int64(v.SoftThreshold),
		PhysicalBlock: v.PhysicalBlockSize, ExplicitAccess: explicitAccess(cfg), GroupNumbers: cfg.QoS.Network.Tags(),
	}
}

// CachePolicy is a volume's write policy in the cache. That of write: sync is
// Through: the logical unit has each write made stable.
func CachePolicy(w conf.WritePolicy) tier.Policy {
	if w == conf.WriteBack {
		return tier.Back
	}
	return tier.Through
}

// CacheChangesOf is the same for the cache.
func (a *Set) CacheChangesOf(v *conf.Volume) tier.Changes {
	return tier.Changes{
		Policy: CachePolicy(v.Write), Min: int64(v.Cache.Min), Max: int64(v.Cache.Max),
		Age: v.Cache.FlushAge, DirtyLimit: int64(v.Cache.DirtyLimit.Of(a.CacheSize)),
	}
}

// AwaitWritten waits until nothing of a volume is in the cache alone, and says what
// still is when the time has passed.
func AwaitWritten(lu *scsi.LogicalUnit, behind tier.Changeable, within time.Duration) string {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(within); ; time.Sleep(pause) {
		settled, n := behind.Settled(), int64(0)
		if s, ok := lu.Store().(backstore.WriteBack); ok {
			n = s.Dirty()
		}
		switch {
		case n == 0 && settled:
			return "all that was in the cache has been written"
		case time.Now().After(end):
			return bytesize.Text(n) + " in the cache are still being written; see lunar status"
		}
	}
}

// ConfiguredAccess is how all volumes are reached at the start.
func ConfiguredAccess(cfg *conf.Config) map[uint16]scsi.PortAccess {
	out := map[uint16]scsi.PortAccess{}
	for i := range cfg.PortalGroups {
		out[cfg.PortalGroups[i].Tag] = AccessOf(&cfg.PortalGroups[i])
	}
	return out
}

// explicitAccess reports whether initiators may change access states.
func explicitAccess(cfg *conf.Config) bool {
	return slices.ContainsFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return g.ALUA.Explicit })
}

// AccessOf translates; conf has checked the name.
func AccessOf(g *conf.PortalGroup) scsi.PortAccess {
	state, _ := scsi.ParseAccessState(g.ALUA.State)
	return scsi.PortAccess{State: state, Preferred: g.ALUA.Preferred}
}

// CloseWait is how long a change waits until a volume has written and closed what it
// has; the rest goes on in the background.
const CloseWait = 15 * time.Second
