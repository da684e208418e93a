package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	zoneShift  = 24   // a stream is looked for by the 16 MiB that it is in
	candidates = 1024 // requests that a second one may continue
)

// ReadaheadConfig bounds what a detector asks for.
type ReadaheadConfig struct {
	Streams int   // sequential streams that are followed at a time
	Start   int64 // bytes of the first window
	Max     int64 // bytes of the largest window
}

// Detector finds sequential streams among the reads of one event thread and
// says what to read ahead. A stream begins with the second request in a row; its
// window, the distance kept ahead of the reader, doubles each time that half of
// it has been used, up to Max, and halves for what was evicted unused. It does no
// I/O and has no lock.
//
// What is followed is kept in a golang-lru list, by LU and zone. Random requests
// never get there: they are stopped by a small table of where a continuation
// would begin, which costs no allocation.
type Detector struct {
	config  ReadaheadConfig
	streams *simplelru.LRU[zone, *stream]
	spare   []*stream
	zones   [zoneSpots]uint8 // streams by the hash of their zone: most requests belong to none
	last    [candidates]candidate
}

// zoneSpots is large beside the number of streams, so that few zones share a spot.
const zoneSpots = 1024

type zone struct {
	lu uint32
	n  int64
}

func (z zone) before() zone { return zone{z.lu, z.n - 1} }

// spot is where the zone's streams are counted.
func (z zone) spot() uint32 { return Key{z.lu, uint64(z.n)}.hash() % zoneSpots }

// stream is one sequential reader.
type stream struct {
	next   int64 // where it goes on
	ahead  int64 // end of what was asked for
	window int64
}

// candidate is where a request has ended.
type candidate struct {
	end int64
	lu  uint32
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
	d.streams, err = simplelru.NewLRU(c.Streams, func(z zone, s *stream) {
		d.zones[z.spot()]--
		d.spare = append(d.spare, s)
	})
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
	if s.ahead-s.next > s.window/2 {
		return Prefetch{}
	}
	if s.ahead > s.next {
		s.window = min(s.window*2, d.config.Max)
	}
	p := Prefetch{s.ahead, min(s.next+s.window, size) - s.ahead}
	if p.Len = min(p.Len, budget); p.Len <= 0 {
		return Prefetch{}
	}
	s.ahead += p.Len
	return p
}

// follow returns the stream that the request continues, nil if there is none.
func (d *Detector) follow(lu uint32, off, n int64) *stream {
	z := zone{lu, off >> zoneShift}
	if d.zones[z.spot()] != 0 || d.zones[z.before().spot()] != 0 {
		if s, ok := d.streams.Get(z); ok && s.continues(off) {
			return s
		}
		if s := d.crossing(z, off); s != nil {
			return s
		}
	}
	c := &d.last[spot(lu, off)]
	sequential := c.lu == lu && c.end == off && off != 0
	d.last[spot(lu, off+n)] = candidate{off + n, lu}
	if !sequential {
		return nil
	}
	return d.begin(z, off)
}

// continues reports whether a request belongs to the stream: where it goes on,
// or among what is being read ahead, since deep queues come out of order.
func (s *stream) continues(off int64) bool { return off >= s.next-s.window && off <= s.ahead }

// crossing moves a stream that goes on in the next zone.
func (d *Detector) crossing(z zone, off int64) *stream {
	before := z.before()
	s, ok := d.streams.Peek(before)
	if !ok || !s.continues(off) {
		return nil
	}
	moved := *s
	d.streams.Remove(before)
	return d.put(z, moved)
}

// begin starts a stream at its second request.
func (d *Detector) begin(z zone, off int64) *stream {
	return d.put(z, stream{next: off, ahead: off, window: d.config.Start})
}

func (d *Detector) put(z zone, from stream) *stream {
	d.streams.Remove(z)
	s := d.spare[len(d.spare)-1]
	d.spare = d.spare[:len(d.spare)-1]
	*s = from
	d.streams.Add(z, s)
	d.zones[z.spot()]++
	return s
}

// Wasted notes that a block at off, read ahead, was evicted before it was used.
func (d *Detector) Wasted(lu uint32, off int64) {
	if s, ok := d.streams.Peek(zone{lu, off >> zoneShift}); ok {
		s.window = max(s.window/2, d.config.Start)
	}
}

// spot is where the table keeps a continuation.
func spot(lu uint32, off int64) uint32 {
	return Key{lu, uint64(off)}.hash() % candidates
}
