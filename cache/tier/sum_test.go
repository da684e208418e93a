package tier

import (
	"bytes"
	"errors"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// flip changes a bit of what the cache has of a volume's byte.
func (p *process) flip(o *opened, at int64) {
	p.t.Helper()
	v := o.store.(*volume)
	size := int64(p.cache.blocks.Geometry.BlockSize())
	part := p.cache.blocks.Part(cache.Key{LU: v.config.LU, Block: uint64(at / size)})
	slot, ok := part.TryRead(cache.Key{LU: v.config.LU, Block: uint64(at / size)}, 1<<(at%size/page))
	if !ok {
		p.t.Fatalf("byte %d is not in the cache", at)
	}
	part.Bytes(slot)[at%size] ^= 4
	blocks.Wake(part.Unpin(slot))
}

// summed is a process of a site with checksums, whose volume has clean data in its
// first four pages and dirty data in the next four.
func summed(t *testing.T) (*site, *process, *opened, []byte) {
	s := newSite(t)
	s.options.Checksum = true
	p := s.start()
	o := p.open("a", Back)
	data := backstoretest.Pattern(8*page, 1)
	o.Write(t, 0, data[:4*page])
	o.Must(t, backstore.Op{Kind: backstore.Flush})
	o.Write(t, 4*page, data[4*page:])
	return s, p, o, data
}

func (o *opened) fails(t testing.TB, what string, op backstore.Op) {
	t.Helper()
	if op.Kind == backstore.Read {
		op.Data = backstoretest.Buffer(int(op.Len))
	} else if op.Kind == backstore.Write {
		op.Data = backstoretest.Pattern(int(op.Len), 7)
	}
	if err := o.Do(op); !errors.Is(err, blocks.ErrDamaged) {
		t.Errorf("%s: error %v", what, err)
	}
}

// TestDamage: a bit that flips in the cache is found when the segment is attached, when
// dirty data are to be written, and by the slow comparison. Clean data come from the
// store again; dirty ones are unreadable, and written nowhere, until they are
// overwritten as a whole. All else goes on.
func TestDamage(t *testing.T) {
	for name, find := range map[string]func(*process, *opened) (*process, *opened){
		"attached": func(p *process, o *opened) (*process, *opened) {
			p.crash()
			p = p.start()
			return p, p.open("a", Back)
		},
		"flushed": func(p *process, o *opened) (*process, *opened) {
			o.fails(p.t, "flush", backstore.Op{Kind: backstore.Flush})
			p.cache.blocks.Scrub() // for the clean one
			return p, o
		},
		"compared": func(p *process, o *opened) (*process, *opened) {
			p.cache.blocks.Scrub()
			return p, o
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, o, data := summed(t)
			p.flip(o, 2*page+100)
			p.flip(o, 5*page+4000)
			p, o = find(p, o)
			if n := p.cache.Stats().Damaged; n != 2 {
				t.Errorf("%d sub-blocks were found damaged, expected 2", n)
			}
			for _, from := range []int{0, 6 * page} { // beside what is damaged
				if got := o.Read(t, int64(from), len(data)/8); !bytes.Equal(got, data[from:from+len(data)/8]) {
					t.Error("something else is read")
				}
			}
			if got := o.Read(t, 2*page, page); !bytes.Equal(got, data[2*page:3*page]) {
				t.Error("a clean page was not read again")
			}
			o.fails(t, "read", backstore.Op{Kind: backstore.Read, Off: 5*page + sector, Len: sector})
			o.fails(t, "long read", backstore.Op{Kind: backstore.Read, Len: 8 * page})
			o.fails(t, "write of a part", backstore.Op{Kind: backstore.Write, Off: 5 * page, Len: sector})
			o.fails(t, "flush", backstore.Op{Kind: backstore.Flush})
			got := s.file("a")
			if !bytes.Equal(got[:5*page], data[:5*page]) || !bytes.Equal(got[6*page:8*page], data[6*page:]) || !bytes.Equal(got[5*page:6*page], make([]byte, page)) {
				t.Error("the store has something else")
			}
			if err := o.store.(*volume).flusher.close(); !errors.Is(err, blocks.ErrDamaged) {
				t.Errorf("closed with %v", err)
			}
			o.Write(t, 5*page, data[5*page:6*page])
			p.end()
			if !bytes.Equal(s.file("a")[:len(data)], data) {
				t.Error("after it was overwritten: the store has something else")
			}
		})
	}
}

// TestDamageStays: a write into a part of a sub-block that was damaged, before anybody
// has found that, does not make it sound.
func TestDamageStays(t *testing.T) {
	_, p, o, data := summed(t)
	p.flip(o, 5*page+4000)
	o.Write(t, 5*page, data[:sector])
	o.fails(t, "flush", backstore.Op{Kind: backstore.Flush})
	o.fails(t, "read", backstore.Op{Kind: backstore.Read, Off: 5 * page, Len: sector})
	o.Must(t, backstore.Op{Kind: backstore.WriteZeroes, Off: 5 * page, Len: page})
	p.end()
}

// TestChecksumsFit: whatever is done, every sum is that of its data.
func TestChecksumsFit(t *testing.T) {
	s, p, o, _ := summed(t)
	backstoretest.On(p.loop, func() {})
	v, err := p.wrap(config("b", Through), siteSize)
	through := p.use(v, err)
	for i := range int64(200) {
		for _, o := range []*opened{o, through} {
			off := i * 7919 % (siteSize / sector) * sector
			n := min(sector*(1+i%40), siteSize-off)
			switch i % 7 {
			case 0:
				o.Read(t, off, int(n))
			case 1:
				o.Must(t, backstore.Op{Kind: backstore.WriteZeroes, Off: off, Len: n})
			case 2:
				o.Must(t, backstore.Op{Kind: backstore.Write, Off: off, FUA: true, Data: backstoretest.Pattern(int(n), uint64(i))})
			default:
				o.Write(t, off, backstoretest.Pattern(int(n), uint64(i)))
			}
		}
	}
	if err := o.store.(backstore.Resizer).Resize(siteSize - 3*sector); err != nil {
		t.Error(err)
	}
	p.cache.blocks.Scrub()
	p.crash()
	p = s.start()
	p.cache.blocks.Scrub()
	if n := p.cache.Stats().Damaged; n != 0 {
		t.Errorf("%d sums are wrong", n)
	}
	v, err = p.wrap(config("a", Back), siteSize-3*sector)
	p.use(v, err)
	p.open("b", Through)
	p.end()
}

// TestDamageOutlivesProcess: a process with damaged data does not end in order, and the
// next one does not serve them either.
func TestDamageOutlivesProcess(t *testing.T) {
	s, p, o, data := summed(t)
	p.flip(o, 5*page+4000)
	if err := p.close(); !errors.Is(err, blocks.ErrDamaged) {
		t.Errorf("closed with %v", err)
	}
	p = s.start()
	o = p.open("a", Back)
	o.fails(t, "read", backstore.Op{Kind: backstore.Read, Off: 5 * page, Len: page})
	if !bytes.Equal(o.Read(t, 6*page, 2*page), data[6*page:]) {
		t.Error("what is sound was lost")
	}
	o.Must(t, backstore.Op{Kind: backstore.Discard, Off: 5 * page, Len: page})
	p.end()
}
