package scsi

import "lunar/target/scsi/sense"

// Settings are what of a logical unit's configuration can change while it is in
// use.
type Settings struct {
	WriteThrough   bool  // every write is stable before it is acknowledged (WCE=0, not changeable)
	ReadOnly       bool  // write protected for everyone; a store that cannot be written is so anyway
	SanitizeRate   int64 // bytes per second that SANITIZE overwrites at most; 0: as many as it can
	SoftThreshold  int64 // bytes of space below which initiators are told that a thin provisioned store runs out of it; 0: they are not
	PhysicalBlock  int   // physical block length in bytes that initiators are told; 0: the store's
	GroupNumbers   bool  // commands may name their class by GROUP NUMBER
	ExplicitAccess bool  // initiators may change how target ports lead here (SET TARGET PORT GROUPS)
}

// Reconfigure puts settings into force, and looks anew at what the store says of
// itself, which may be another one (backstore.Slot). All initiators are told by the
// unit attention MODE PARAMETERS CHANGED when they may write no more, or may again, or
// when WCE or the soft threshold has changed; by INQUIRY DATA HAS CHANGED and CAPACITY
// DATA HAS CHANGED of what those commands say. True says that the write cache is off
// now and was not: what was acknowledged before needs a flush. Calls come one at a
// time, and none after Close.
func (lu *LogicalUnit) Reconfigure(s Settings) (flush bool) {
	lu.sanitizeRate.Store(s.SanitizeRate)
	told, had := lu.thresholdSets(), lu.traits.Load()
	info := lu.store.Info()
	info.Size = had.info.Size
	has := lu.findTraits(s, info)
	watch := s.SoftThreshold != lu.space.threshold.Load() || has.info.Thin != had.info.Thin
	if watch {
		lu.stopWatching()
	}
	flush = lu.adopt(s, had, has)
	if watch {
		lu.watchSpace(s.SoftThreshold)
	}
	if told != lu.thresholdSets() {
		lu.Attention(sense.ASCModeParametersChanged, nil)
	}
	return flush
}

// adopt replaces State and traits.
func (lu *LogicalUnit) adopt(s Settings, had, has *traits) (flush bool) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.traits.Store(has)
	before := lu.state.Load()
	next := *before
	next.ReadOnly = s.ReadOnly || has.info.ReadOnly
	if next.WriteThrough != s.WriteThrough || had.info.VolatileCache != has.info.VolatileCache {
		next.WriteThrough, next.WriteCache = s.WriteThrough, has.info.VolatileCache && !s.WriteThrough
	}
	lu.state.Store(&next)
	if next.ReadOnly != before.ReadOnly || next.WriteThrough != before.WriteThrough || next.WriteCache != before.WriteCache {
		lu.attention(sense.ASCModeParametersChanged, nil)
	}
	lu.tellTraits(had, has)
	return before.WriteCache && !next.WriteCache
}
