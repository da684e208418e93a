package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// FussyParams are the parameters of FussyCache.
type FussyParams struct {
	FreqThreshold   int // a block is popular after more accesses than this
	AccessThreshold int // accesses between ticks
	Metadata        int // blocks that the metadata cache describes
	HRCount         int // ticks of falling hit rate before the first change to LRU
}

const (
	// maxFreq is where counting stops; popularity begins far below.
	maxFreq = 64
	// maxHRCount is where hrCount stops doubling.
	maxHRCount = 1 << 20
)

// Fussy is FussyCache: only popular blocks enter the data cache, which is the
// partition. The others are counted in a metadata cache (DMC). While the hit
// rate falls for HRCount ticks in a row it turns into LRU, and back when there
// is enough that is popular or after as many ticks; each change doubles HRCount,
// so that a workload which suits neither does not make it flutter.
//
// The metadata cache is built of golang-lru lists, one for each frequency, so
// that the least frequent and of these the least recent goes first. They
// allocate when a block is counted for the first time or moves up: on misses
// only.
type Fussy struct {
	params  FussyParams
	dmc     []*simplelru.LRU[Key, struct{}] // by frequency - 1
	freq    *simplelru.LRU[Key, int]        // frequency of what is in dmc
	popular *simplelru.LRU[Key, struct{}]   // in dmc, in the order of becoming popular

	lru        bool
	promoting  bool // a tick has begun to hand out the popular blocks
	hits       int  // since the last tick
	accesses   int  // since the last tick
	previous   float64
	hrMeasure  int
	hrCount    int
	switches   int
	frequented int // lowest frequency - 1 that may be in use

	warm  *WarmUp       // nil: there is none, or it is full
	ready func(*WarmUp) // hears that it is
}

// NewFussy returns a FussyCache in its FC mode.
func NewFussy(params FussyParams) (*Fussy, error) {
	if params.FreqThreshold < 1 || params.FreqThreshold >= maxFreq || params.AccessThreshold < 1 || params.Metadata < 1 || params.HRCount < 1 {
		return nil, fmt.Errorf("fussy cache parameters %+v: expected all to be at least 1 and FreqThreshold below %d", params, maxFreq)
	}
	f := &Fussy{params: params, hrCount: params.HRCount, previous: -1}
	for range maxFreq {
		l, err := simplelru.NewLRU[Key, struct{}](params.Metadata, nil)
		if err != nil {
			return nil, err
		}
		f.dmc = append(f.dmc, l)
	}
	var err error
	if f.freq, err = simplelru.NewLRU[Key, int](params.Metadata, nil); err != nil {
		return nil, err
	}
	f.popular, err = simplelru.NewLRU[Key, struct{}](params.Metadata, nil)
	return f, err
}

// NewWarmingFussy returns a FussyCache that is LRU at first and records accesses.
// When there are enough of them ready is called, under the partition's lock, once:
// it hands the record to whoever finds parameters in it, for Partition.Tune. Until
// then the FussyCache remains LRU, with the given parameters.
func NewWarmingFussy(params FussyParams, m LatencyModel, ready func(*WarmUp)) (*Fussy, error) {
	f, err := NewFussy(params)
	if err != nil {
		return nil, err
	}
	f.lru, f.warm, f.ready = true, NewWarmUp(m), ready
	return f, nil
}

// record notes an access for the warm-up and reports whether there is one.
func (f *Fussy) record(k Key) bool {
	if f.warm == nil {
		return false
	}
	if f.warm.Note(k); f.warm.Full() {
		warm := f.warm
		f.warm = nil
		f.ready(warm)
	}
	return true
}

// LRU reports whether the policy admits everything now.
func (f *Fussy) LRU() bool { return f.lru }

// Hit implements Admission. In LRU mode a resident block goes on being counted.
func (f *Fussy) Hit(k Key) {
	if f.record(k) {
		return
	}
	f.hits++
	f.accesses++
	if f.lru && f.freq.Contains(k) {
		f.count(k)
	}
}

// Miss implements Admission.
func (f *Fussy) Miss(k Key) bool {
	if f.record(k) {
		return true
	}
	f.accesses++
	f.count(k)
	return f.lru
}

// Evicted implements Admission: a victim starts again at one.
func (f *Fussy) Evicted(k Key) {
	if f.warm == nil && !f.freq.Contains(k) {
		f.put(k, 1)
	}
}

// Due implements Admission.
func (f *Fussy) Due() bool { return f.promoting || f.accesses >= f.params.AccessThreshold }

// Tick implements Admission. A tick that out is too short for goes on with the
// next call.
func (f *Fussy) Tick(out []Key) int {
	if !f.promoting {
		f.tick()
	}
	n := 0
	for ; f.promoting && n < len(out); n++ {
		k, _, ok := f.popular.GetOldest()
		if !ok {
			f.promoting = false
			break
		}
		out[n] = k
		f.forget(k)
	}
	f.promoting = f.promoting && f.popular.Len() > 0
	return n
}

// tick ends an interval.
func (f *Fussy) tick() {
	rate := float64(f.hits) / float64(max(f.accesses, 1))
	f.hits, f.accesses = 0, 0
	if f.lru {
		f.hrMeasure++
		if f.popular.Len() > f.params.Metadata/2 || f.hrMeasure >= f.hrCount {
			f.change()
		}
		return
	}
	f.promoting = true
	f.measure(rate)
}

// measure counts ticks of falling hit rate.
func (f *Fussy) measure(rate float64) {
	if f.previous > rate {
		f.hrMeasure++
	} else {
		f.hrMeasure = 0
	}
	f.previous = rate
	if f.hrMeasure >= f.hrCount {
		f.change()
	}
}

// change goes to the other mode.
func (f *Fussy) change() {
	f.lru = !f.lru
	f.hrMeasure, f.previous = 0, -1
	f.hrCount = min(f.hrCount*2, maxHRCount)
	f.switches++
}

// count adds one to the frequency of a block.
func (f *Fussy) count(k Key) {
	n, _ := f.freq.Peek(k)
	f.put(k, min(n+1, maxFreq))
	if n+1 > f.params.FreqThreshold && !f.popular.Contains(k) {
		f.popular.Add(k, struct{}{})
	}
}

// put gives a block a frequency, and a place among the most recent of it.
func (f *Fussy) put(k Key, n int) {
	if old, ok := f.freq.Peek(k); ok {
		f.dmc[old-1].Remove(k)
	} else if f.freq.Len() == f.params.Metadata {
		f.forgetLeast()
	}
	f.freq.Add(k, n)
	f.dmc[n-1].Add(k, struct{}{})
	f.frequented = min(f.frequented, n-1)
}

// forgetLeast makes room in the metadata cache.
func (f *Fussy) forgetLeast() {
	for ; f.frequented < maxFreq; f.frequented++ {
		if k, _, ok := f.dmc[f.frequented].GetOldest(); ok {
			f.forget(k)
			return
		}
	}
	f.frequented = 0
}

// forget takes a block out of the metadata cache.
func (f *Fussy) forget(k Key) {
	n, ok := f.freq.Peek(k)
	if !ok {
		return
	}
	f.freq.Remove(k)
	f.dmc[n-1].Remove(k)
	f.popular.Remove(k)
}
