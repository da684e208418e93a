package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"lunar/cache"
	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
)

const (
	block       = 16 << 10
	sub         = 4096
	sector      = 512
	volumeCount = 2
	blockCount  = 5 // of a volume
	size        = blockCount * block
)

// volume is what must be found.
type volume struct {
	store, want [size]byte
	dirty       [size / sub]bool
}

// process is the one that has the segment, one after the other. It is killed when fuse
// bytes have been copied into the segment; below 0: not.
type process struct {
	*rapid.T
	path    string
	config  Config
	segment *segment.Segment
	memory  *Memory
	volumes [volumeCount]volume
	version uint64
	fuse    int
}

// killed is the panic of a process that ends.
type killed struct{}

// move implements Partition.Move.
func (p *process) move(dst, src []byte) {
	if p.fuse >= 0 && p.fuse < len(src) {
		copy(dst, src[:p.fuse])
		panic(killed{})
	}
	copy(dst, src)
	if p.fuse >= 0 {
		p.fuse -= len(src)
	}
}

// dies does something that copies, and reports whether it was killed in it.
func (p *process) dies(do func()) (dead bool) {
	if rapid.IntRange(0, 2).Draw(p.T, "is it killed") == 0 {
		p.fuse = rapid.IntRange(0, 2*sub).Draw(p.T, "after bytes")
	}
	defer func() {
		p.fuse = -1
		if why := recover(); why == (killed{}) {
			dead = true
		} else if why != nil {
			panic(why)
		}
	}()
	do()
	return false
}

// attach begins the next process.
func (p *process) attach() {
	geometry, err := cache.NewGeometry(p.config.Layout)
	p.must(err)
	whole, err := p.config.SegmentGeometry([]int{-1, -1})
	p.must(err)
	p.segment, err = segment.Attach(p.path, segment.Options{Identity: "test", Geometry: whole, Threads: 1})
	p.must(err)
	table := volumes.NewTable(p.segment.Area(TableArea))
	for lu := range uint64(volumeCount) {
		if _, known := table.Find(lu + 1); !known {
			r, _ := table.Vacant(volumeCount)
			r.Give(lu + 1)
		}
	}
	c := p.config
	c.Segment = p.segment
	p.memory, err = Open(c, geometry, table)
	p.must(err)
	for i := range p.memory.Parts {
		p.memory.Parts[i].Move = p.move
	}
}

func (p *process) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// kill ends the process, and begins the next.
func (p *process) kill() {
	p.must(errors.Join(p.memory.Close(), p.segment.Detach()))
	p.attach()
}

// killIn is kill, in a write of data at a byte of a volume. What was dirty there is as it
// was or as it was to become, each sub-block for itself; else the store has it.
func (p *process) killIn(lu uint32, off int, data []byte) {
	p.kill()
	v := &p.volumes[lu]
	for end := off + len(data); off < end; {
		n := min(end, (off/sub+1)*sub) - off
		now := v.store[off : off+n]
		if v.dirty[off/sub] {
			now = p.held(lu, off/sub)[off%sub:][:n]
			if !bytes.Equal(now, data[:n]) && !bytes.Equal(now, v.want[off:off+n]) {
				p.Fatalf("volume %d: after a kill byte %d is neither what it was nor what was being written", lu, off)
			}
		}
		copy(v.want[off:], now)
		off, data = off+n, data[n:]
	}
}

// held returns the memory of a sub-block that must be in the cache.
func (p *process) held(lu uint32, at int) []byte {
	key, mask := cache.Key{LU: lu, Block: uint64(at * sub / block)}, uint64(1)<<(at%(block/sub))
	part := p.memory.Part(key)
	slot, ok := part.TryRead(key, mask)
	if !ok {
		p.Fatalf("volume %d: sub-block %d was dirty, and is gone", lu, at)
	}
	Wake(part.Unpin(slot))
	return part.subBlock(slot, at%(block/sub))
}

// place draws a range of a block of a volume.
func (p *process) place() (lu uint32, off, n int) {
	lu = rapid.Uint32Range(0, volumeCount-1).Draw(p.T, "volume")
	off = sector * rapid.IntRange(0, size/sector-1).Draw(p.T, "sector")
	return lu, off, sector * rapid.IntRange(1, (block-off%block)/sector).Draw(p.T, "sectors")
}

// fill puts what the store has into sub-blocks that are claimed.
func (p *process) fill(part *Partition, key cache.Key, slot uint32, mask uint64) {
	from := int(key.Block) * block
	for rest := mask; rest != 0; rest &= rest - 1 {
		at := bits.TrailingZeros64(rest)
		copy(part.subBlock(slot, at), p.volumes[key.LU].store[from+at*sub:])
	}
	part.Seal(slot, mask)
}

func (p *process) write(*rapid.T) {
	lu, off, n := p.place()
	end := rapid.SampledFrom([]cache.End{cache.Dirty, cache.Dirty, cache.Dirty, cache.Clean, cache.Failed}).Draw(p.T, "end")
	v, key := &p.volumes[lu], cache.Key{LU: lu, Block: uint64(off / block)}
	part := p.memory.Part(key)
	touched, whole := p.memory.Geometry.Masks(uint32(off%block), uint32(n))
	data := make([]byte, n)
	for i := 0; i < n; i += 8 {
		p.version++
		binary.NativeEndian.PutUint64(data[i:], p.version)
	}
	g := part.BeginWrite(key, touched, whole, true, nil)
	switch {
	case g.Outcome == cache.Bypass:
		copy(v.store[off:], data)
		copy(v.want[off:], data)
		end = cache.Failed
	case g.Outcome != cache.Granted:
		p.Fatalf("a write gets %v", g.Outcome)
	case end == cache.Failed:
	default:
		if end == cache.Dirty {
			p.fill(part, key, g.Slot, g.Missing)
		} else {
			copy(v.store[off:], data)
		}
		in := p.memory.IntentOf(nil)
		if rapid.Bool().Draw(p.T, "no event thread") {
			in = p.memory.AnyIntent()
		}
		if p.dies(func() { part.Put(in, &g, uint32(off%block), data) }) {
			p.killIn(lu, off, data)
			return
		}
		copy(v.want[off:], data)
	}
	Wake(part.EndWrite(&g, end))
	for at := off / sub; at*sub < off+n && end != cache.Failed; at++ {
		covered := off <= at*sub && (at+1)*sub <= off+n
		v.dirty[at] = end == cache.Dirty || v.dirty[at] && !covered
	}
}

func (p *process) read(*rapid.T) {
	lu, off, n := p.place()
	v, key := &p.volumes[lu], cache.Key{LU: lu, Block: uint64(off / block)}
	part := p.memory.Part(key)
	want, _ := p.memory.Geometry.Masks(uint32(off%block), uint32(n))
	r := part.Read(key, want, nil)
	switch r.Outcome {
	case cache.Bypass:
		if !bytes.Equal(v.store[off:off+n], v.want[off:off+n]) {
			p.Fatalf("volume %d: %d bytes at %d are to be read from the store, which has others", lu, n, off)
		}
		return
	case cache.Fill:
		var err error
		if rapid.IntRange(0, 5).Draw(p.T, "fails") == 0 {
			err = errors.New("medium")
		} else {
			p.fill(part, key, r.Slot, r.Mask)
		}
		pinned, chain := part.EndFill(r.Slot, r.Mask, want, err)
		Wake(chain)
		if pinned != (err == nil) {
			p.Fatalf("pinned after a fill with %v: %v", err, pinned)
		}
		if err != nil {
			return
		}
	case cache.Hit:
	default:
		p.Fatalf("a read gets %v", r.Outcome)
	}
	got := make([]byte, n)
	part.CopyOut(got, r.Slot, uint32(off%block))
	Wake(part.Unpin(r.Slot))
	if !bytes.Equal(got, v.want[off:off+n]) {
		p.Fatalf("volume %d: other data are read of %d bytes at %d", lu, n, off)
	}
}

// flush writes a run of dirty data to the store.
func (p *process) flush(*rapid.T) {
	part := &p.memory.Parts[rapid.IntRange(0, len(p.memory.Parts)-1).Draw(p.T, "partition")]
	from := cache.Key{LU: rapid.Uint32Range(0, volumeCount-1).Draw(p.T, "volume"), Block: rapid.Uint64Range(0, blockCount-1).Draw(p.T, "block")}
	out, ok := make([]cache.Extent, 3), rapid.Bool().Draw(p.T, "written")
	run := part.TakeDirty(from, cache.Key{LU: volumeCount}, out, nil)
	if run.Outcome != cache.Granted {
		return
	}
	out = out[:run.Extents]
	for _, e := range out {
		v, at := &p.volumes[e.Key.LU], int(e.Key.Block)*block+int(e.Off)
		data := part.Bytes(e.Slot)[e.Off : e.Off+e.Len]
		if !bytes.Equal(data, v.want[at:at+len(data)]) {
			p.Fatalf("volume %d: other data are flushed of %d bytes at %d", e.Key.LU, len(data), at)
		}
		for i := at / sub; ok && i*sub < at+len(data); i++ {
			v.dirty[i] = false
		}
		if ok {
			copy(v.store[at:], data)
		}
	}
	Wake(part.EndFlush(out, ok))
}

// drop discards sub-blocks.
func (p *process) drop(*rapid.T) {
	lu, off, n := p.place()
	key, ok := cache.Key{LU: lu, Block: uint64(off / block)}, rapid.Bool().Draw(p.T, "dropped")
	part := p.memory.Part(key)
	mask, _ := p.memory.Geometry.Masks(uint32(off%block), uint32(n))
	g := part.BeginDrop(key, mask, nil)
	if ok {
		from := off / sub * sub
		p.volumes[lu].zero(from, (off+n+sub-1)/sub*sub)
		p.volumes[lu].clean(from, off+n)
	}
	Wake(part.EndDrop(&g, ok))
}

// zero makes zeroes of [from, end) on the store and in what must be found.
func (v *volume) zero(from, end int) {
	clear(v.store[from:end])
	clear(v.want[from:end])
}

// clean has nothing dirty any more in the sub-blocks that begin in [from, end).
func (v *volume) clean(from, end int) {
	for at := (from + sub - 1) / sub; at*sub < end; at++ {
		v.dirty[at] = false
	}
}

// cut claims all that is behind a byte, as a volume that shrinks does.
func (p *process) cut(*rapid.T) {
	lu, end, _ := p.place()
	gone := rapid.Bool().Draw(p.T, "gone")
	tail := p.memory.ClaimTail(lu, int64(end))
	v := &p.volumes[lu]
	if !gone {
		tail.Release(false)
		return
	}
	behind := (end + sub - 1) / sub * sub
	v.zero(behind, size)
	v.clean(end, size)
	clear(v.store[end:behind])
	if p.dies(func() { tail.Release(true) }) {
		p.killIn(lu, end, make([]byte, behind-end))
		return
	}
	clear(v.want[end:behind])
}

// forget drops what is clean, or all.
func (p *process) forget(*rapid.T) {
	lu := rapid.Uint32Range(0, volumeCount-1).Draw(p.T, "volume")
	v, left := &p.volumes[lu], map[int]bool{}
	if rapid.Bool().Draw(p.T, "all") {
		p.memory.Purge(lu)
		v.want, v.dirty = v.store, [size / sub]bool{}
	} else {
		p.memory.Forget(lu)
	}
	for at, dirty := range v.dirty {
		if dirty {
			left[at*sub/block] = true
		}
	}
	if n := p.memory.Blocks(lu); n != len(left) {
		p.Fatalf("volume %d: %d blocks are left, expected %d", lu, n, len(left))
	}
}

// end ends the process: killed while somebody has claims, or in order.
func (p *process) end(*rapid.T) {
	if rapid.Bool().Draw(p.T, "in order") {
		p.must(errors.Join(p.memory.Close(), p.segment.Close()))
		p.attach()
		return
	}
	lu, off, n := p.place()
	key := cache.Key{LU: lu, Block: uint64(off / block)}
	part := p.memory.Part(key)
	touched, whole := p.memory.Geometry.Masks(uint32(off%block), uint32(n))
	switch rapid.IntRange(0, 4).Draw(p.T, "claim") {
	case 0:
		part.BeginWrite(key, touched, whole, true, nil)
	case 1:
		part.BeginDrop(key, touched, nil)
	case 2:
		part.Read(key, touched, nil)
	case 3:
		part.TakeDirty(cache.Key{LU: lu}, cache.Key{LU: lu + 1}, make([]cache.Extent, 2), nil)
	}
	p.kill()
}

// check compares all that the cache has, and what it says of what is dirty.
func (p *process) check(*rapid.T) {
	for i := range p.memory.Parts {
		part := &p.memory.Parts[i]
		p.must(part.Check())
		for slot := range part.Slots() {
			if k, mask, ok := part.Examine(slot); ok {
				p.compare(part, slot, k, mask)
				Wake(part.Unpin(slot))
			}
		}
	}
	if n := p.memory.Damaged(); n != 0 {
		p.Fatalf("%d checksums are wrong", n)
	}
	for lu := range p.volumes {
		p.checkDirty(uint32(lu))
	}
}

func (p *process) compare(part *Partition, slot uint32, k cache.Key, mask uint64) {
	if wrong := part.Wrong(slot, mask); wrong != 0 {
		p.Fatalf("%v: the checksums of sub-blocks %b are wrong", k, wrong)
	}
	for ; mask != 0; mask &= mask - 1 {
		at := bits.TrailingZeros64(mask)
		if from := int(k.Block)*block + at*sub; !bytes.Equal(part.subBlock(slot, at), p.volumes[k.LU].want[from:from+sub]) {
			p.Fatalf("%v: the cache has other data in sub-block %d", k, at)
		}
	}
}

func (p *process) checkDirty(lu uint32) {
	v := &p.volumes[lu]
	sum, end := 0, 0
	for at, dirty := range v.dirty {
		if dirty {
			p.held(lu, at)
			sum, end = sum+sub, (at+1)*sub
		}
	}
	if n, e := p.memory.DirtyBytes(lu), p.memory.DirtyEnd(lu); n != int64(sum) || e != int64(end) {
		p.Fatalf("volume %d: %d dirty bytes that end at %d, expected %d and %d", lu, n, e, sum, end)
	}
	off := sector * rapid.IntRange(0, size/sector-1).Draw(p.T, "from sector")
	limit := off + sector*rapid.IntRange(1, (size-off)/sector).Draw(p.T, "sectors")
	from, to := p.memory.DirtyRange(lu, int64(off), int64(limit))
	first := off
	for first < limit && !v.dirty[first/sub] {
		first = (first/sub + 1) * sub
	}
	if first = min(first, limit); from != int64(first) {
		p.Fatalf("volume %d: the first dirty byte of [%d, %d) is %d, expected %d", lu, off, limit, from, first)
	}
	last := first
	for last < limit && v.dirty[last/sub] && (last == first || last%block != 0) {
		last = (last/sub + 1) * sub
	}
	if last = min(last, limit); to != int64(last) {
		p.Fatalf("volume %d: what is dirty in [%d, %d) from %d on ends at %d, expected %d", lu, off, limit, from, to, last)
	}
}

// Whatever processes do one after the other to two volumes, in order or killed at any
// byte that they copy: what was acknowledged is found, a write that was not is there for
// each sub-block wholly or not at all, and the memory knows what is dirty.
func TestWhatProcessesLeave(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "blocks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	rapid.Check(t, func(rt *rapid.T) {
		p := &process{T: rt, path: filepath.Join(dir, "segment"), fuse: -1}
		slots := rapid.IntRange(1, 3).Draw(rt, "slots")
		p.config = Config{
			Layout: cache.Layout{BlockSize: block, Neighbours: 2, Partitions: 2, Nodes: 2, Contiguous: rapid.Bool().Draw(rt, "contiguous")},
			Bytes:  int64(2 * slots * block), LUs: volumeCount, Checksum: rapid.Bool().Draw(rt, "checksums"), Logger: slog.New(slog.DiscardHandler),
		}
		p.attach()
		defer func() {
			if err := errors.Join(p.memory.Close(), p.segment.Detach(), os.Remove(p.path)); err != nil {
				rt.Error(err)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"write": p.write, "overwrite": p.write, "read": p.read, "flush": p.flush, "drop": p.drop,
			"cut": p.cut, "forget": p.forget, "end": p.end, "": p.check,
		})
	})
}
