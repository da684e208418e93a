package tier

import (
	"errors"
	"math/bits"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// fill reads sub-blocks from the store below into block memory, one run of them
// after the other. The caller has claimed them.
type fill struct {
	lower *lower
	part  *blocks.Partition
	key   cache.Key
	slot  uint32
	mask  uint64 // what is being filled
	rest  uint64 // what of it was not asked for yet
	op    backstore.Op
	owner filler
}

// filler hears that its fill has ended.
type filler interface{ filled(err error) }

// bind is done once in a fill's life.
func (f *fill) bind(l *lower, owner filler) { f.lower, f.owner, f.op.Done = l, owner, f.ended }

// load fills mask of slot, which is f.key; owner.filled follows, perhaps at once.
func (f *fill) load(slot uint32, mask uint64) {
	f.slot, f.mask, f.rest, f.op.Err = slot, mask, mask, nil
	f.run()
}

func (f *fill) run() {
	for f.rest != 0 {
		f.prepare()
		if !f.lower.begin(&f.op) {
			return
		}
		if f.op.Err != nil {
			break
		}
	}
	f.op.Data = nil
	if f.op.Err == nil {
		f.part.Seal(f.slot, f.mask)
	}
	f.owner.filled(f.op.Err)
}

// errClosing ends what was being read ahead when its lane was closed: the store
// below may have nobody left to do more.
var errClosing = errors.New("the lane is being closed")

// ended is op.Done.
func (f *fill) ended(*backstore.Op) {
	if f.op.Err == nil && f.rest != 0 && f.lower.closing {
		f.op.Err = errClosing
	}
	if f.op.Err != nil {
		f.rest = 0
	}
	f.run()
}

// prepare makes op read the first run of rest. Behind the end of the volume are
// zeroes.
func (f *fill) prepare() {
	first := bits.TrailingZeros64(f.rest)
	n := bits.TrailingZeros64(^(f.rest >> first))
	f.rest &^= (^uint64(0) >> (64 - n)) << first
	from := first * f.part.Sub
	data := f.part.Bytes(f.slot)[from : from+n*f.part.Sub]
	off := int64(f.key.Block)*int64(f.part.Block) + int64(from)
	if room := f.lower.store.Info().Size - off; room < int64(len(data)) {
		clear(data[room:])
		data = data[:room]
	}
	f.op.Kind, f.op.Off, f.op.Data = backstore.Read, off, data
}
