package scsi

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/cache"
	"lunar/cache/tier"
	"lunar/target/scsi/sense"
)

// coherenceBlocks is the size of the unit: small, so that commands meet, and not
// a multiple of a page.
const coherenceBlocks = 200 + 3

// cached is a unit behind the cache, and what should be in it.
type cached struct {
	*initiator
	name   string
	cache  *tier.Cache
	medium *memstore.Store

	image  []byte
	used   [coherenceBlocks]bool        // must be reported as mapped
	may    [coherenceBlocks][][512]byte // what a power cut may leave of a block; the last is the current one
	stable bool                         // writes are, when they are acknowledged
	forced bool                         // they always are
}

// coherent are the caches that the same commands are sent to.
var coherent = map[string]struct {
	blocks int // of the cache
	config tier.VolumeConfig
	forced bool // the logical unit has each write made stable
}{
	"through":    {5, tier.VolumeConfig{Policy: tier.Through}, false},
	"back":       {4, tier.VolumeConfig{Policy: tier.Back, Age: time.Millisecond}, false},
	"back, late": {51, tier.VolumeConfig{Policy: tier.Back, Age: time.Hour}, false},
	"sync":       {4, tier.VolumeConfig{Policy: tier.Through}, true},
}

func newCached(t *testing.T, name string, blocks int, config tier.VolumeConfig, forced bool) *cached {
	t.Helper()
	c := &cached{name: name, forced: forced}
	var err error
	if c.medium, err = memstore.New(memstore.Config{Size: coherenceBlocks * 512, Async: blocks%2 == 0}); err != nil {
		t.Fatal(err)
	}
	c.cache, err = tier.New(tier.Config{
		Layout: cache.Layout{BlockSize: 8192, Neighbours: 2, Partitions: 2, Nodes: 1}, Bytes: int64(blocks) * 8192, LUs: 1,
		Logger: testLogger(io.Discard),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.cache.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := c.cache.Wrap(c.medium, config)
	if err != nil {
		t.Fatal(err)
	}
	lu, err := NewLogicalUnit(LUConfig{Name: name, Store: store, WriteThrough: c.forced, Logger: testLogger(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	c.initiator = newInitiator(t, lu)
	return c
}

// reset makes unit and model hold zeroes.
func (c *cached) reset(t *rapid.T) {
	c.selectWCE(t, true)
	c.good(t, cdb16(0x93, 0, 0, coherenceBlocks), make([]byte, 512), 0)
	c.good(t, syncCDB, nil, 0)
	c.image = make([]byte, coherenceBlocks*512)
	for i := range c.may {
		c.may[i], c.used[i] = [][512]byte{{}}, false
	}
}

// good sends a command that must end with GOOD, and returns its Data-In.
func (c *cached) good(t *rapid.T, cdb, out []byte, in uint32) []byte {
	p := c.send(cdb, out, in, rapid.Bool().Draw(t, "immediate"))
	if p.c.Status != Good {
		t.Fatalf("%s: CDB %x: status %02x, sense %+v", c.name, cdb, p.c.Status, p.c.Sense)
	}
	return p.in
}

func (c *cached) selectWCE(t *rapid.T, on bool) {
	c.stable = !on || c.forced
	if c.forced {
		return
	}
	page := make([]byte, 4+20)
	page[4], page[5] = 0x08, 0x12
	if on {
		page[6] = 0x04
	}
	c.good(t, []byte{0x15, 0x10, 0, 0, byte(len(page)), 0}, page, 0)
	if !on {
		c.flushed()
	}
}

// flushed notes that all is stable.
func (c *cached) flushed() {
	for i := range c.may {
		c.may[i] = c.may[i][len(c.may[i])-1:]
	}
}

// changed notes that the blocks from lba on hold data now.
func (c *cached) changed(lba uint64, data []byte, stable, used bool) {
	copy(c.image[lba*512:], data)
	for i := 0; i < len(data); i += 512 {
		b := lba + uint64(i/512)
		c.may[b] = append(c.may[b], [512]byte(data[i:]))
		if stable || c.stable {
			c.may[b] = c.may[b][len(c.may[b])-1:]
		}
		c.used[b] = used
	}
}

func (c *cached) blocks(lba, n uint64) []byte { return c.image[lba*512 : (lba+n)*512] }

// request is a random command's address and data.
type request struct {
	lba, n uint64
	data   []byte
	fua    byte
}

func drawRequest(t *rapid.T) request {
	r := request{lba: rapid.Uint64Range(0, coherenceBlocks-1).Draw(t, "lba")}
	r.n = rapid.Uint64Range(1, min(coherenceBlocks-r.lba, 60)).Draw(t, "blocks")
	r.data = backstoretest.Pattern(int(r.n)*512, rapid.Uint64Range(0, 9).Draw(t, "data"))
	if rapid.IntRange(0, 4).Draw(t, "zeroes") == 0 {
		clear(r.data)
	}
	if rapid.IntRange(0, 3).Draw(t, "fua") == 0 {
		r.fua = fuaBit
	}
	return r
}

// agreeing are the media commands that must agree on what is in the unit.
var agreeing = map[string]func(*rapid.T, *cached, request){
	"READ": func(t *rapid.T, c *cached, r request) {
		if got := c.good(t, cdb16(0x88, 0, r.lba, r.n), nil, uint32(r.n)*512); !bytes.Equal(got, c.blocks(r.lba, r.n)) {
			t.Fatalf("%s: READ of %d at %d differs", c.name, r.n, r.lba)
		}
	},
	"WRITE": func(t *rapid.T, c *cached, r request) {
		c.good(t, cdb16(0x8a, r.fua, r.lba, r.n), r.data, 0)
		c.changed(r.lba, r.data, r.fua != 0, true)
	},
	"WRITE AND VERIFY": func(t *rapid.T, c *cached, r request) {
		c.good(t, cdb16(0x8e, bytchkAll<<1, r.lba, r.n), r.data, 0)
		c.changed(r.lba, r.data, true, true)
	},
	"VERIFY": func(t *rapid.T, c *cached, r request) {
		c.good(t, cdb16(0x8f, bytchkAll<<1, r.lba, r.n), c.blocks(r.lba, r.n), 0)
		wrong := slices.Clone(c.blocks(r.lba, r.n))
		wrong[len(wrong)/3]++
		c.miscompares(t, cdb16(0x8f, bytchkAll<<1, r.lba, r.n), wrong)
		c.good(t, cdb16(0x8f, bytchkBlock<<1, r.lba, 1), c.blocks(r.lba, 1), 0)
	},
	"COMPARE AND WRITE": func(t *rapid.T, c *cached, r request) {
		r.n = min(r.n, maxCompareBlocks)
		r.data = r.data[:r.n*512]
		wrong := slices.Concat(c.blocks(r.lba, r.n), r.data)
		wrong[len(r.data)-1]++
		cdb := cdb16(0x89, r.fua, r.lba, 0)
		cdb[13] = byte(r.n)
		c.miscompares(t, cdb, wrong)
		c.good(t, cdb, slices.Concat(c.blocks(r.lba, r.n), r.data), 0)
		c.changed(r.lba, r.data, r.fua != 0, true)
	},
	"WRITE SAME": func(t *rapid.T, c *cached, r request) {
		c.good(t, cdb16(0x93, 0, r.lba, r.n), r.data[:512], 0)
		c.changed(r.lba, bytes.Repeat(r.data[:512], int(r.n)), false, true)
	},
	"WRITE SAME, UNMAP": func(t *rapid.T, c *cached, r request) {
		c.good(t, cdb16(0x93, unmapBit|ndobBit, r.lba, r.n), nil, 0)
		c.changed(r.lba, make([]byte, r.n*512), false, false)
	},
	"UNMAP": func(t *rapid.T, c *cached, r request) {
		list := unmapList([2]uint64{r.lba, r.n})
		c.good(t, unmapCDB(list), list, 0)
		c.changed(r.lba, make([]byte, r.n*512), false, false)
	},
	"SYNCHRONIZE CACHE": func(t *rapid.T, c *cached, r request) {
		c.good(t, syncCDB, nil, 0)
		c.flushed()
	},
	"MODE SELECT":    func(t *rapid.T, c *cached, r request) { c.selectWCE(t, r.fua == 0) },
	"GET LBA STATUS": func(t *rapid.T, c *cached, r request) { c.checkStatus(t, r.lba) },
}

func (c *cached) miscompares(t *rapid.T, cdb, out []byte) {
	if p := c.send(cdb, out, 0, false); p.c.Status != CheckCondition || p.c.Sense.Key != sense.Miscompare {
		t.Fatalf("%s: CDB %x: status %02x, sense %+v", c.name, cdb, p.c.Status, p.c.Sense)
	}
}

// checkStatus expects what was written to be mapped, and what is not to read as
// zeroes.
func (c *cached) checkStatus(t *rapid.T, lba uint64) {
	cdb := append([]byte{0x9e, 0x12}, cdb16(0, 0, lba, 2000)[2:]...)
	data := c.good(t, cdb, nil, 2000)[lbaStatusHeader:]
	for ; len(data) > 0; data = data[lbaStatusDescriptor:] {
		first, n := binary.BigEndian.Uint64(data), uint64(binary.BigEndian.Uint32(data[8:]))
		if first != lba || n == 0 || first+n > coherenceBlocks {
			t.Fatalf("%s: GET LBA STATUS: %d blocks at %d, expected some at %d", c.name, n, first, lba)
		}
		if lba += n; data[12] == 0 {
			continue
		}
		if i := slices.Index(c.used[first:first+n], true); i >= 0 || !isZero(c.blocks(first, n)) {
			t.Fatalf("%s: GET LBA STATUS: blocks %d to %d are deallocated, yet they hold data or were written", c.name, first, first+n-1)
		}
	}
}

// cut takes the power from the medium, and with it from the cache.
func (c *cached) cut(t *rapid.T, seed uint64) {
	left := c.medium.CrashClone(seed).Bytes()
	for i := range c.may {
		if !slices.Contains(c.may[i], [512]byte(left[i*512:])) {
			t.Fatalf("%s: a power cut leaves of block %d what it must not: one of %d versions was expected", c.name, i, len(c.may[i]))
		}
	}
}

// TestCoherence: whatever the cache does, commands agree on what is in the unit,
// and what was promised to survive a power cut does.
func TestCoherence(t *testing.T) {
	var all []*cached
	for name, s := range coherent {
		all = append(all, newCached(t, name, s.blocks, s.config, s.forced))
	}
	names := slices.Sorted(maps.Keys(agreeing))
	rapid.Check(t, func(rt *rapid.T) {
		for _, c := range all {
			c.reset(rt)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "commands") {
			r := drawRequest(rt)
			command := agreeing[rapid.SampledFrom(names).Draw(rt, "command")]
			for _, c := range all {
				command(rt, c, r)
				if r.n%2 == 0 {
					c.cut(rt, r.lba)
				}
			}
		}
		for _, c := range all {
			c.whole(rt)
		}
	})
}

// whole compares all of the unit, and of the medium after a flush.
func (c *cached) whole(t *rapid.T) {
	all := request{n: coherenceBlocks}
	agreeing["READ"](t, c, all)
	agreeing["GET LBA STATUS"](t, c, all)
	agreeing["SYNCHRONIZE CACHE"](t, c, all)
	c.cut(t, 1)
	if !bytes.Equal(c.medium.Bytes(), c.image) {
		t.Fatalf("%s: the medium differs after a flush", c.name)
	}
	if err := c.cache.Check(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
}
