package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	zoneShift  = 24      // a stream is looked for by the 16 MiB that it is in
	candidates = 1 << 10 // requests that another one may continue; spot makes ten bits
	firstAhead = 4       // requests of the first window
	inRow      = 1       // a tag with it is of a request that has continued another one
)

// ReadaheadConfig bounds what a detector asks for.
type ReadaheadConfig struct {
	Streams int   // sequential streams that are followed at a time
	Start   int64 // bytes of the first window at most
	Max     int64 // bytes of the largest window
}

// Detector finds sequential streams among the reads of one event thread and
// says what to read ahead. A stream begins with the third request in a row, since of
// random reads within some hundred megabytes one in a hundred follows another by chance.
// Its window, the distance kept ahead of the reader, is that of a few requests at first,
// and doubles each time that half of it has been used, up to Max. It does no I/O and has
// no lock.
//
// What is followed is kept in a golang-lru list in the order of its use, by LU and
// zone, and found by small tables, which cost random requests two cache lines and no
// allocation.
type Detector struct {
	config  ReadaheadConfig
	streams *simplelru.LRU[zone, *stream]
	spare   []*stream
	spots   [zoneSpots]*stream // chains of streams, by their zones
	last    [candidates]uint32 // tags of where requests have ended, with inRow
}

// zoneSpots is large beside the number of streams, so that few zones share a spot.
const zoneSpots = 256

type zone struct {
	lu uint32
	n  int64
}

func (z zone) before() zone { return zone{z.lu, z.n - 1} }

// spot is where the zone's streams are found: beside those of the zone before it.
func (z zone) spot() uint64 { return (uint64(z.n) + uint64(z.lu)*0x9e3779b1) % zoneSpots }

// stream is one sequential reader.
type stream struct {
	zone   zone
	chain  *stream
	next   int64 // where it goes on
	ahead  int64 // end of what was asked for
	window int64
	used   int64 // bytes read since the last request ahead
}

// Prefetch is a range to read ahead; none if Len is 0.
type Prefetch struct {
	Off, Len int64 // bytes
}

// NewDetector checks the configuration.
func NewDetector(c ReadaheadConfig) (*Detector, error) {
	if c.Streams < 1 || c.Streams > 255 || c.Start < 1 || c.Max < c.Start {
		return nil, fmt.Errorf("readahead %+v: expected 1 to 255 streams and 0 < Start <= Max", c)
	}
	d := &Detector{config: c, spare: make([]*stream, 0, c.Streams+1)}
	for range c.Streams + 1 {
		d.spare = append(d.spare, new(stream))
	}
	var err error
	d.streams, err = simplelru.NewLRU(c.Streams, func(_ zone, s *stream) { d.drop(s) })
	return d, err
}

// Read notes a read of n bytes at off of an LU of the given size, and returns
// what to read ahead now, at most budget bytes.
func (d *Detector) Read(lu uint32, off, n, size, budget int64) Prefetch {
	s := d.follow(lu, off, n)
	if s == nil {
		return Prefetch{}
	}
	s.next = max(s.next, off+n)
	s.ahead = max(s.ahead, s.next)
	s.used += n
	if s.ahead > s.next {
		// One that only happens to be within the window has used none of what is before it.
		if half := s.window / 2; s.ahead-s.next > half || s.used < half {
			return Prefetch{}
		}
		s.window = min(s.window*2, d.config.Max)
	}
	p := Prefetch{s.ahead, min(s.next+s.window, size) - s.ahead}
	if p.Len = min(p.Len, budget); p.Len <= 0 {
		return Prefetch{}
	}
	s.ahead += p.Len
	s.used = 0
	return p
}

// follow returns the stream that the request continues, nil if there is none.
func (d *Detector) follow(lu uint32, off, n int64) *stream {
	z := zone{lu, off >> zoneShift}
	if s := d.find(z); s != nil && s.continues(off) {
		d.streams.Get(z) // it has been used
		return s
	}
	if s := d.crossing(z, off); s != nil {
		return s
	}
	was, tag := spot(lu, off)
	found := d.last[was]
	at, end := spot(lu, off+n)
	if off != 0 && found&^inRow == tag {
		end |= inRow
	}
	d.last[at] = end
	if found != tag|inRow {
		return nil
	}
	return d.put(z, stream{next: off, ahead: off, window: min(d.config.Start, firstAhead*n)})
}

// find returns the stream of a zone, nil if there is none.
func (d *Detector) find(z zone) *stream {
	s := d.spots[z.spot()]
	for s != nil && s.zone != z {
		s = s.chain
	}
	return s
}

// continues reports whether a request belongs to the stream: where it goes on,
// or among what is being read ahead, since deep queues come out of order.
func (s *stream) continues(off int64) bool { return off >= s.next-s.window && off <= s.ahead }

// crossing moves a stream that goes on in the next zone.
func (d *Detector) crossing(z zone, off int64) *stream {
	before := z.before()
	s := d.find(before)
	if s == nil || !s.continues(off) {
		return nil
	}
	moved := *s
	d.streams.Remove(before)
	return d.put(z, moved)
}

func (d *Detector) put(z zone, from stream) *stream {
	d.streams.Remove(z)
	s := d.spare[len(d.spare)-1]
	d.spare = d.spare[:len(d.spare)-1]
	first := &d.spots[z.spot()]
	*s = from
	s.zone, s.chain, *first = z, *first, s
	d.streams.Add(z, s)
	return s
}

// drop forgets a stream that has left the list.
func (d *Detector) drop(s *stream) {
	at := &d.spots[s.zone.spot()]
	for *at != s {
		at = &(*at).chain
	}
	*at = s.chain
	d.spare = append(d.spare, s)
}

// spot is where the table keeps a continuation, and the tag that it has there, without
// inRow. That two have the same tag is so rare that it does no harm.
func spot(lu uint32, off int64) (at int, tag uint32) {
	h := (uint64(off) + uint64(lu)*0xd6e8feb86659fd93) * 0x9e3779b97f4a7c15
	return int(h >> 54), uint32(h>>22) &^ inRow
}
