package tier

import (
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

const (
	streams     = 32        // sequential readers that a lane follows
	firstWindow = 128 << 10 // bytes that are read ahead at first
	fetches     = 64        // blocks that a lane has under way for nobody yet, at most
	turnFetches = 4         // popular blocks that one read begins to fetch, at most
	promoted    = 64        // popular blocks that are taken from a partition at a time
)

// readAhead reads for those who have not asked yet: sequential streams, and blocks
// that the admission policy has chosen.
type readAhead struct {
	volume   *shared
	lower    *lower
	ended    func()          // hears of each end of a fetch
	detector *cache.Detector // nil: no readahead
	limit    int64           // bytes under way
	bytes    int64           // under way
	running  int             // fetches
	spare    []*fetch
	keys     [promoted]cache.Key
}

// newDetector returns what follows sequential readers, with at most limit bytes under
// way; nil for none.
func newDetector(limit int64) (*cache.Detector, error) {
	if limit <= 0 {
		return nil, nil
	}
	return cache.NewDetector(cache.ReadaheadConfig{Streams: streams, Start: min(firstWindow, limit), Max: limit})
}

// fetch is the fill of one block that nobody waits for.
type fetch struct {
	fill
	ahead *readAhead
}

// read follows a read, and reads on if it is one of a sequence.
func (r *readAhead) read(off, n int64) {
	ahead := r.detector.Read(r.volume.config.LU, off, n, r.volume.size(), r.limit-r.bytes)
	for end := ahead.Off + ahead.Len; ahead.Off < end; {
		n := r.fetch(ahead.Off, end-ahead.Off)
		ahead.Off += n
	}
}

// fetch reads what is missing of the first block of a range, and returns how far
// that goes.
func (r *readAhead) fetch(off, n int64) int64 {
	var one [1]cache.Piece
	m, lu := r.volume.blocks, r.volume.config.LU
	_, bytes := m.Geometry.Split(lu, off, int(min(n, int64(m.Geometry.BlockSize()))), one[:])
	part := &m.Parts[one[0].Partition]
	want, _ := m.Geometry.Masks(one[0].Off, one[0].Len)
	key := cache.Key{LU: lu, Block: one[0].Block}
	if r.lower.closing || r.running >= fetches {
		return int64(bytes)
	}
	if got := part.Prefetch(key, want); got.Outcome == cache.Fill {
		f := r.newFetch()
		f.part, f.key = part, key
		r.bytes += m.BytesOf(got.Mask)
		r.volume.counters.ahead.Add(uint64(m.BytesOf(got.Mask)))
		f.load(got.Slot, got.Mask)
	}
	return int64(bytes)
}

func (r *readAhead) newFetch() *fetch {
	r.running++
	if n := len(r.spare); n > 0 {
		f := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return f
	}
	f := &fetch{ahead: r}
	f.bind(r.lower, f)
	return f
}

// filled implements filler. An error is for whoever asks for the data.
func (f *fetch) filled(err error) {
	r := f.ahead
	_, chain := f.part.EndFill(f.slot, f.mask, 0, err)
	blocks.Wake(chain)
	r.bytes -= r.volume.blocks.BytesOf(f.mask)
	r.running--
	r.spare = append(r.spare, f)
	r.ended()
}

// promote lets the admission policies of the partition work in which a read
// begins, and fetches what was chosen of this volume.
func (r *readAhead) promote(off int64) {
	m, lu := r.volume.blocks, r.volume.config.LU
	part := m.Part(cache.Key{LU: lu, Block: uint64(off) >> m.BlockShift()})
	if part.Due() {
		if n := part.Tick(r.keys[:]); n > 0 {
			r.volume.choose(r.keys[:n])
		}
	}
	size, unit := r.volume.size(), int64(m.Geometry.BlockSize())
	for range turnFetches {
		if r.running >= fetches {
			return
		}
		block, ok := r.volume.chosen.take()
		if !ok {
			return
		}
		if off := int64(block) * unit; off < size {
			r.fetch(off, min(unit, size-off))
		}
	}
}
