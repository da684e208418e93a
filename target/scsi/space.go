package scsi

import (
	"math/bits"
	"time"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// spaceEvery is how often a logical unit with a soft threshold looks at what
// space is left for it.
const spaceEvery = 2 * time.Second

// watchSpace begins to look whether less than threshold bytes are left, if it is
// not 0. Close ends it.
func (lu *LogicalUnit) watchSpace(threshold int64) {
	_, err := backstore.SpaceOf(lu.store)
	lu.space.known.Store(err == nil && lu.traits.Load().info.Thin)
	lu.space.threshold.Store(threshold)
	lu.space.reached = false
	if threshold <= 0 || !lu.knowsSpace() {
		return
	}
	stop := make(chan struct{})
	lu.space.stop = stop
	lu.space.ended.Go(func() {
		tick := time.NewTicker(spaceEvery)
		defer tick.Stop()
		for {
			lu.lookAtSpace()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
}

func (lu *LogicalUnit) stopWatching() {
	if lu.space.stop != nil {
		close(lu.space.stop)
		lu.space.ended.Wait()
		lu.space.stop = nil
	}
}

// lookAtSpace compares what is left with the threshold.
func (lu *LogicalUnit) lookAtSpace() {
	space, err := backstore.SpaceOf(lu.store)
	if err != nil {
		return // the commands that fail say more
	}
	threshold := lu.space.threshold.Load()
	short := space.Available < threshold
	if short && !lu.space.reached {
		lu.config.Logger.Warn("the soft threshold of a thin provisioned volume is reached", "volume", lu.Name(),
			"available", space.Available, "threshold", threshold)
		lu.Attention(sense.ASCSoftThresholdReached, nil)
	}
	lu.space.reached = short
}

// knowsSpace reports whether the store can tell what space is left for it.
func (lu *LogicalUnit) knowsSpace() bool {
	return lu.space.known.Load()
}

// thresholdExponent returns THRESHOLD EXPONENT (SBC-3 clause 6.6.4): the
// logical blocks of a threshold set as a power of two, small enough that the
// numbers of sets fit 32 bits.
func (lu *LogicalUnit) thresholdExponent() byte {
	if !lu.knowsSpace() {
		return 0
	}
	const finest = 20 // bits of bytes: sets of 1 MiB
	coarse := max(0, bits.Len64(uint64(lu.traits.Load().info.Size))-32)
	return byte(max(1, max(finest, coarse)-int(lu.blockShift)))
}

// thresholdSets returns the soft threshold in threshold sets, 0 if there is none.
func (lu *LogicalUnit) thresholdSets() uint32 {
	threshold := lu.space.threshold.Load()
	if threshold <= 0 || !lu.knowsSpace() {
		return 0
	}
	set := uint(lu.thresholdExponent()) + lu.blockShift
	return uint32(min((threshold+1<<set-1)>>set, 0xffffffff))
}
