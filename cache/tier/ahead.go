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
	detector *cache.Detector // nil: no readahead
	limit    int64           // bytes under way
	bytes    int64           // under way
	running  int             // fetches
	spare    []*fetch
	keys     [promoted]cache.Key
}

func newReadAhead(limit int64) (r readAhead, err error) {
	if limit <= 0 {
		return r, nil
	}
	r.limit = limit
	r.detector, err = cache.NewDetector(cache.ReadaheadConfig{Streams: streams, Start: min(firstWindow, limit), Max: limit})
	return r, err
}

// fetch is the fill of one block that nobody waits for.
type fetch struct{ fill }

// readAhead follows a read, and reads on if it is one of a sequence.
func (l *lane) readAhead(off, n int64) {
	budget := l.ahead.limit - l.ahead.bytes
	ahead := l.ahead.detector.Read(l.volume.config.LU, off, n, l.volume.size(), budget)
	for end := ahead.Off + ahead.Len; ahead.Off < end; {
		n := l.fetch(ahead.Off, end-ahead.Off)
		ahead.Off += n
	}
}

// fetch reads what is missing of the first block of a range, and returns how far
// that goes.
func (l *lane) fetch(off, n int64) int64 {
	var one [1]cache.Piece
	g, lu := l.cache.blocks.Geometry, l.volume.config.LU
	_, bytes := g.Split(lu, off, int(min(n, int64(g.BlockSize()))), one[:])
	part := &l.cache.blocks.Parts[one[0].Partition]
	want, _ := g.Masks(one[0].Off, one[0].Len)
	key := cache.Key{LU: lu, Block: one[0].Block}
	if l.closing || l.ahead.running >= fetches {
		return int64(bytes)
	}
	if r := part.Prefetch(key, want); r.Outcome == cache.Fill {
		f := l.newFetch()
		f.part, f.key = part, key
		l.ahead.bytes += l.cache.blocks.BytesOf(r.Mask)
		l.cache.stats.ahead.Add(uint64(l.cache.blocks.BytesOf(r.Mask)))
		f.load(r.Slot, r.Mask)
	}
	return int64(bytes)
}

func (l *lane) newFetch() *fetch {
	l.ahead.running++
	if n := len(l.ahead.spare); n > 0 {
		f := l.ahead.spare[n-1]
		l.ahead.spare = l.ahead.spare[:n-1]
		return f
	}
	f := new(fetch)
	f.bind(l, f)
	return f
}

// filled implements filler. An error is for whoever asks for the data.
func (f *fetch) filled(err error) {
	l := f.lane
	_, chain := f.part.EndFill(f.slot, f.mask, 0, err)
	blocks.Wake(chain)
	l.ahead.bytes -= l.cache.blocks.BytesOf(f.mask)
	l.ahead.running--
	l.ahead.spare = append(l.ahead.spare, f)
	l.closeIfIdle()
}

// promote lets the admission policies of the partition work in which a read
// begins, and fetches what was chosen of this volume.
func (l *lane) promote(off int64) {
	block := uint64(off) >> l.cache.blocks.BlockShift()
	part := &l.cache.blocks.Parts[l.cache.blocks.Geometry.Partition(cache.Key{LU: l.volume.config.LU, Block: block})]
	if part.Due() {
		if n := part.Tick(l.ahead.keys[:]); n > 0 {
			l.cache.choose(l.ahead.keys[:n])
		}
	}
	size, unit := l.volume.size(), int64(l.cache.blocks.Geometry.BlockSize())
	for range turnFetches {
		if l.ahead.running >= fetches {
			return
		}
		block, ok := l.volume.chosen.take()
		if !ok {
			return
		}
		if off := int64(block) * unit; off < size {
			l.fetch(off, min(unit, size-off))
		}
	}
}

// choose hands blocks to their volumes.
func (c *Cache) choose(keys []cache.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if v := c.mu.volumes[k.LU]; v != nil {
			v.chosen.add(k.Block)
		}
	}
}
