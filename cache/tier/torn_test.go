package tier

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"unsafe"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
)

// stops watches each word that a process copies. Were the process killed there, what
// attaches its segment must find each logical block as it was or as it was to become.
type stops struct {
	*testing.T
	step     int
	options  Options // of the process
	old, new []byte  // of the volume
	seen     int
	became   int // blocks that were new
}

// move copies like memcopy.Copy, and stops before, after and every step bytes.
func (s *stops) move(dst, src []byte) {
	for at := 0; at < len(src); at += s.step {
		s.stop()
		copy(dst[at:at+s.step], src[at:at+s.step])
	}
	s.stop()
}

// stop attaches a copy of the segment as it is now.
func (s *stops) stop() {
	if s.Failed() {
		return
	}
	s.seen++
	mem, err := os.ReadFile(s.options.Segment)
	if err != nil {
		s.Fatal(err)
	}
	o := s.options
	o.Segment += ".copy"
	if err := os.WriteFile(o.Segment, mem, 0o600); err != nil {
		s.Fatal(err)
	}
	c, err := Open(o)
	if err != nil {
		s.Errorf("stop %d: %v", s.seen, err)
		return
	}
	for _, d := range c.config.Segment.Dirty {
		s.check(c, d)
	}
	if n := c.Stats().Damaged; n != 0 {
		s.Errorf("stop %d: %d checksums are wrong", s.seen, n)
	}
	if err := c.Close(); err != nil {
		s.Error(err)
	}
}

// check compares the dirty part of a slot.
func (s *stops) check(c *Cache, d segment.Range) {
	slots := int(c.blocks.Parts[0].Slots())
	part := &c.blocks.Parts[int(d.Slot)/slots]
	block := part.Bytes(d.Slot % uint32(slots))
	for at := 0; at < len(block); at += sector {
		if d.Mask>>(at/part.Sub)&1 == 0 {
			continue
		}
		from := int(d.Block)*len(block) + at
		got, was, is := block[at:at+sector], s.old[from:from+sector], s.new[from:from+sector]
		switch {
		case bytes.Equal(got, is) && !bytes.Equal(was, is):
			s.became++
		case !bytes.Equal(got, was):
			s.Errorf("stop %d: the logical block at byte %d is neither the old nor the new one", s.seen, from)
			return
		}
	}
}

// TestNoTornBlocks stops writes into blocks that are dirty, in part or wholly, at each
// word that they copy, or at every eighth. One of two nodes has the data: the other's
// thread forwards what is written to it. With checksums none is wrong.
func TestNoTornBlocks(t *testing.T) {
	const block = 16 << 10
	for _, test := range []struct {
		name string
		step int // bytes
		op   backstore.Op
	}{
		{"a sub-block", 32, backstore.Op{Kind: backstore.Write, Off: 4 * page, Len: page}},
		{"a logical block", 32, backstore.Op{Kind: backstore.Write, Off: 4*page + sector, Len: sector}},
		{"parts of two sub-blocks", 64, backstore.Op{Kind: backstore.Write, Off: 5*page - sector, Len: 2 * sector}},
		{"two blocks, dirty or clean", 64, backstore.Op{Kind: backstore.Write, Off: block - 3*sector, Len: 2*page + 4*sector}},
		{"zeroes at edges", 64, backstore.Op{Kind: backstore.WriteZeroes, Off: 4*page + 3*sector, Len: page}},
		{"through", 64, backstore.Op{Kind: backstore.Write, Off: 5*page - sector, Len: 3 * sector, FUA: true}},
	} {
		forwarded := uint64(0)
		for node := range 2 {
			t.Run(fmt.Sprintf("%s, from node %d", test.name, node), func(t *testing.T) {
				forwarded += tornSite(t, test.op, test.step, node, node == 1)
			})
		}
		if test.op.Kind == backstore.Write && forwarded == 0 {
			t.Errorf("%s: nothing was forwarded", test.name)
		}
	}
}

// tornSite does op, that comes in on a node, to a volume of which pages 3, 4, 5 and 8
// are dirty. It returns how many requests were forwarded.
func tornSite(t *testing.T, op backstore.Op, step, node int, checksum bool) (forwarded uint64) {
	site := newSite(t)
	site.options.Checksum = checksum
	site.options.PerNode, site.options.ForwardThreshold, site.options.Logger = 64<<10, 1, slog.New(slog.DiscardHandler)
	p := site.start()
	defer p.end()
	loops := nodeLoops(t, site.options.Topology, 2)
	p.cache.Serve(loops...)
	p.loop = loops[node]
	s := stops{T: t, step: step, options: site.options, old: make([]byte, siteSize)}
	o := p.open("a", Back)
	for _, n := range []int{3, 4, 5, 8} {
		data := backstoretest.Pattern(page, uint64(n))
		copy(s.old[n*page:], data)
		o.Write(t, int64(n*page), data)
	}
	s.new = bytes.Clone(s.old)
	if op.Kind == backstore.Write {
		op.Data = backstoretest.Pattern(int(op.Len), 99)
		copy(s.new[op.Off:], op.Data)
	} else {
		clear(s.new[op.Off : op.Off+op.Len])
	}
	for i := range p.cache.blocks.Parts {
		p.cache.blocks.Parts[i].Move = s.move
	}
	o.Must(t, op)
	s.stop()
	if got := o.Read(t, 0, siteSize); !bytes.Equal(got, s.new) {
		t.Error("something else is read back")
	}
	if s.seen < int(op.Len)/step || s.became == 0 {
		t.Errorf("%d stops, at which %d blocks were new", s.seen, s.became)
	}
	nodes, _ := p.cache.Forwarding()
	for _, n := range nodes {
		forwarded += n.Forwarded
	}
	return forwarded
}

// A half-done write that cannot be one is no reason to write anywhere.
func TestDoubtfulIntent(t *testing.T) {
	for name, damage := range map[string]func(record []uint64, dirty spot){
		"seal":            func(r []uint64, dirty spot) { r[0], r[1] = dirty.word(), seal(dirty.word())^1 },
		"clean slot":      func(r []uint64, dirty spot) { intend(r, spot{dirty.slot + 1, 0, sector}) },
		"clean sub-block": func(r []uint64, dirty spot) { intend(r, spot{dirty.slot, page, sector}) },
		"nothing":         func(r []uint64, dirty spot) { intend(r, spot{dirty.slot, sector, 0}) }, // at byte 0 of slot 0 that would be no intent
		"too much":        func(r []uint64, dirty spot) { intend(r, spot{dirty.slot, 0, page + sector}) },
		"behind its end":  func(r []uint64, dirty spot) { intend(r, spot{dirty.slot, page - sector, 2 * sector}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			p := s.start()
			p.open("a", Back).Write(t, 0, backstoretest.Pattern(page, 1))
			p.crash()
			p = s.start()
			_, record := intentOf(p.cache, 7)
			damage(record, spot{slot: p.cache.config.Segment.Dirty[0].Slot})
			p.crash()
			if _, err := Open(s.options); err == nil || !strings.Contains(err.Error(), "half-done write") {
				t.Errorf("attached: %v", err)
			}
		})
	}
}

// spot is a range of a slot; intents are an area of 256 pages, and then of as many
// records.
type spot struct{ slot, off, n uint32 }

func (s spot) word() uint64 { return uint64(s.slot)<<36 | uint64(s.off)<<16 | uint64(s.n) }

func seal(word uint64) uint64 {
	word *= 0x9e3779b97f4a7c15
	return word ^ word>>32
}

// intentOf returns the buffer and the record of one of the segment's intents.
func intentOf(c *Cache, i int) (buffer []byte, record []uint64) {
	area := c.config.Segment.Area("intents")
	return area[i*page : (i+1)*page], unsafe.Slice((*uint64)(unsafe.Pointer(&area[256*page+i*64])), 8)
}

func intend(record []uint64, at spot) { record[0], record[1] = at.word(), seal(at.word()) }
