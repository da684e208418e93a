package tier

import (
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// accessTimes are what a warm-up is judged by: a fast device, for which fussy
// admission is made.
var accessTimes = cache.LatencyModel{Lookup: 1000, Device: 15_000, Data: 5000, Metadata: 500}

// warming returns a FussyCache for a partition that finds its parameters in the
// first accesses there.
func (v *volume) warming(part *blocks.Partition) (cache.Admission, error) {
	slots := v.slotsOf(part)
	params := cache.FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: max(slots/2, 1), HRCount: 5}
	return cache.NewWarmingFussy(params, accessTimes, func(w *cache.WarmUp) {
		v.tuning.Go(func() { v.tune(part, w) })
	})
}

// slotsOf returns how many blocks of a partition the volume may have.
func (v *volume) slotsOf(part *blocks.Partition) int {
	slots := part.Size() / part.Block
	if most := int(v.blocksOf(v.changes.Load().Max)); most > 0 {
		slots = min(slots, most)
	}
	return slots
}

// tune replays a record, which takes a while: on a goroutine of its own, and one
// record at a time, so that event threads keep their CPUs.
func (v *volume) tune(part *blocks.Partition, w *cache.WarmUp) {
	v.cache.replays.Lock()
	defer v.cache.replays.Unlock()
	if v.untuned.Load() {
		return
	}
	params, err := w.Tune(v.slotsOf(part))
	if err == nil {
		err = part.Tune(v.config.LU, params)
	}
	if err != nil {
		v.cache.log.Error("fussy admission could not be tuned, everything enters", "volume", v.config.Name, "err", err)
		return
	}
	v.cache.log.Debug("fussy admission tuned", "volume", v.config.Name, "parameters", params)
}
