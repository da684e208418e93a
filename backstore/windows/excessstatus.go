package windows

import (
	"sync/atomic"

	"lunar/backstore"
)

type excessCounts struct{ slow, fast, back atomic.Uint64 }

// ExcessStatus is what an Excess tells of itself.
type ExcessStatus struct {
	Held int64  // bytes that only the fast device has
	Used int    // percent of the segment that takes records
	Slow uint64 // changes that the slow device took
	Fast uint64 // changes that the fast device took
	Back uint64 // writes back to the slow device
}

// Status returns what the Excess is doing.
func (x *Excess) Status() ExcessStatus {
	s := ExcessStatus{
		Used: int(x.journal.used() * 100),
		Slow: x.counts.slow.Load(), Fast: x.counts.fast.Load(), Back: x.counts.back.Load(),
	}
	x.map_.RLock()
	defer x.map_.RUnlock()
	s.Held = x.map_.bytes
	return s
}

// Troubles implements backstore.Patient.
func (x *Excess) Troubles() (out []backstore.Trouble) {
	if text := x.trouble.Load(); text != nil {
		out = append(out, backstore.Trouble{Failed: true, What: *text})
	}
	return append(out, x.ofDevices(backstore.Patient.Troubles)...)
}

// Examine implements backstore.Patient.
func (x *Excess) Examine() []backstore.Trouble { return x.ofDevices(backstore.Patient.Examine) }

func (x *Excess) ofDevices(ask func(backstore.Patient) []backstore.Trouble) (out []backstore.Trouble) {
	for _, s := range []backstore.Store{x.config.Slow, x.config.Fast} {
		if p, ok := s.(backstore.Patient); ok {
			out = append(out, ask(p)...)
		}
	}
	return out
}
