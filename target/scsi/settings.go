package scsi

// Settings are what of a logical unit's configuration can change while it is in
// use.
type Settings struct {
	WriteThrough  bool  // every write is stable before it is acknowledged (WCE=0, not changeable)
	ReadOnly      bool  // write protected for everyone; a store that cannot be written is so anyway
	SanitizeRate  int64 // bytes per second that SANITIZE overwrites at most; 0: as many as it can
	SoftThreshold int64 // bytes of space below which initiators are told that a thin provisioned store runs out of it; 0: they are not
}

// Reconfigure puts settings into force. All initiators are told by the unit
// attention MODE PARAMETERS CHANGED when they may write no more, or may again, or
// when WCE or the soft threshold has changed. True says that the write cache is off now and was not:
// what was acknowledged before needs a flush. Calls come one at a time, and none
// after Close.
func (lu *LogicalUnit) Reconfigure(s Settings) (flush bool) {
	lu.sanitizeRate.Store(s.SanitizeRate)
	told := lu.thresholdSets()
	if s.SoftThreshold != lu.space.threshold.Load() {
		lu.stopWatching()
		lu.watchSpace(s.SoftThreshold)
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	before := lu.state.Load()
	next := *before
	next.ReadOnly = s.ReadOnly || lu.info.ReadOnly
	if next.WriteThrough != s.WriteThrough {
		next.WriteThrough, next.WriteCache = s.WriteThrough, lu.info.VolatileCache && !s.WriteThrough
	}
	lu.state.Store(&next)
	if next.ReadOnly != before.ReadOnly || next.WriteThrough != before.WriteThrough || told != lu.thresholdSets() {
		lu.attention(ASCModeParametersChanged, nil)
	}
	return before.WriteCache && !next.WriteCache
}
