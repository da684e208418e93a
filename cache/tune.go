package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// warmUp is how many accesses a FussyCache is tuned with.
	warmUp = 2000
	// maxTuneFreq is the largest popularity threshold that is tried.
	maxTuneFreq = 8
	// defaultHRCount is the paper's.
	defaultHRCount = 5
)

// accessThresholds are the tick intervals that are tried, in accesses.
var accessThresholds = []int{50, 100, 200, 300, 500, 1000}

// LatencyModel is what parts of an access take, in nanoseconds.
type LatencyModel struct {
	Lookup   int64 // every access
	Device   int64 // a miss
	Data     int64 // inserting a block's data after a miss
	Metadata int64 // counting a block after a miss
}

// WarmUp records the first accesses of an LU, to find the parameters of its
// FussyCache. Until it is full the cache runs as LRU.
type WarmUp struct {
	model LatencyModel
	trace []Key
}

// NewWarmUp allocates the record.
func NewWarmUp(m LatencyModel) *WarmUp { return &WarmUp{model: m, trace: make([]Key, 0, warmUp)} }

// Note records an access unless the record is full.
func (w *WarmUp) Note(k Key) {
	if !w.Full() {
		w.trace = append(w.trace, k)
	}
}

// Full reports that Tune has all it needs.
func (w *WarmUp) Full() bool { return len(w.trace) == cap(w.trace) }

// Tune returns the parameters for a data cache of the given number of blocks
// under which the recorded accesses would have taken least time. It searches
// the popularity threshold, then the interval of ticks, and again, until neither
// changes. The metadata cache gets the size that it would have used, between a
// half and all of the data cache's.
//
// It replays the record some dozens of times: not for an event thread.
func (w *WarmUp) Tune(blocks int) (FussyParams, error) {
	if blocks < 1 || len(w.trace) == 0 {
		return FussyParams{}, fmt.Errorf("tune a fussy cache of %d blocks with %d accesses: expected some of both", blocks, len(w.trace))
	}
	best := FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: w.metadata(blocks), HRCount: defaultHRCount}
	least := w.latency(best, blocks)
	for changed := true; changed; {
		changed = false
		for freq := 1; freq <= maxTuneFreq; freq++ {
			c := best
			c.FreqThreshold = freq
			changed = w.better(c, blocks, &best, &least) || changed
		}
		for _, interval := range accessThresholds {
			c := best
			c.AccessThreshold = interval
			changed = w.better(c, blocks, &best, &least) || changed
		}
	}
	return best, nil
}

// metadata returns how many blocks of the record do not fit the data cache,
// within limits.
func (w *WarmUp) metadata(blocks int) int {
	distinct := map[Key]struct{}{}
	for _, k := range w.trace {
		distinct[k] = struct{}{}
	}
	return max(min(len(distinct)-blocks, blocks), blocks/2, 1)
}

func (w *WarmUp) better(c FussyParams, blocks int, best *FussyParams, least *int64) bool {
	l := w.latency(c, blocks)
	if l < *least {
		*best, *least = c, l
		return true
	}
	return false
}

// latency is the sum of all recorded accesses' times under the given parameters,
// which are valid.
func (w *WarmUp) latency(params FussyParams, blocks int) (sum int64) {
	f, err := NewFussy(params)
	if err != nil {
		panic(err)
	}
	data, err := simplelru.NewLRU(blocks, func(k Key, _ struct{}) { f.Evicted(k) })
	if err != nil {
		panic(err)
	}
	out := make([]Key, 64)
	for _, k := range w.trace {
		sum += w.access(f, data, k)
		for f.Due() {
			for _, k := range out[:f.Tick(out)] {
				data.Add(k, struct{}{})
			}
		}
	}
	return sum
}

func (w *WarmUp) access(f *Fussy, data *simplelru.LRU[Key, struct{}], k Key) int64 {
	if _, ok := data.Get(k); ok {
		f.Hit(k)
		return w.model.Lookup
	}
	if f.Miss(k) {
		data.Add(k, struct{}{})
		return w.model.Lookup + w.model.Device + w.model.Data
	}
	return w.model.Lookup + w.model.Device + w.model.Metadata
}
