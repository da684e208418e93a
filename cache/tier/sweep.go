package tier

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/arena"
)

const (
	sweepBytes   = 1 << 20 // that a sweep has under way, and in one write, at most
	sweepExtents = 256     // that it has under way at most
	sweepWrites  = 16      // that it has under way at most
	// mergeBelow is how long may be what is copied to be written together with its
	// neighbours: what is longer is worth a write of its own.
	mergeBelow = 64 << 10
)

// noBlock is behind all blocks.
const noBlock = ^uint64(0)

// sweep writes the dirty blocks of a volume in order of address, in batches of
// several writes. Neighbours that lie behind each other in memory are one write from there;
// other small ones are merged through an aligned buffer. It is reused.
//
// A patient sweep waits for what is in others' hands, when it has nothing under
// way itself: at its end all that was dirty at its beginning has been written.
// Another sweep passes over that.
type sweep struct {
	volume  *shared
	lower   *lower
	patient bool
	owner   sweeper
	waiter  cache.Waiter

	end   uint64 // blocks from here on are left alone
	heads []head // by partition: the first block that may be dirty from where the sweep is
	block uint64 // that is being looked at; noBlock: the next is to be found
	owing uint64 // sub-blocks of it that were dirty when it was found, and are not taken yet

	extents [sweepExtents]cache.Extent
	writes  [sweepWrites]sweepWrite
	n       int // extents
	count   int // writes
	bytes   int64
	pending int
	written int64
	barren  int // batches in succession of which nothing was written
	gather  []byte
	err     error // the first
	errOff  int64 // where the write began that failed
	full    bool  // the owner has enough
}

// sweeper is who a sweep works for.
type sweeper interface {
	swept(*sweep)           // the sweep has ended
	progressed(*sweep) bool // a batch has ended, perhaps with an error; true: go on behind it
}

// head is a block and which of its sub-blocks were dirty when it was found.
type head struct {
	block uint64 // noBlock: none
	dirty uint64
}

// sweepWrite is one write of neighbouring extents.
type sweepWrite struct {
	sweep      *sweep
	first, end int  // extents
	straight   bool // they lie behind each other in memory
	op         backstore.Op
}

// sweeps are a lane's.
type sweeps struct {
	volume *shared
	lower  *lower
	spare  []*sweep
}

// over returns one over the blocks [first, end). Its owner puts it back.
func (l *sweeps) over(first, end uint64, patient bool, owner sweeper) *sweep {
	var s *sweep
	if n := len(l.spare); n > 0 {
		s, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		s = newSweep(l)
	}
	s.patient, s.owner, s.err, s.written, s.barren, s.full = patient, owner, nil, 0, 0, false
	s.block, s.end = noBlock, end
	for i := range s.heads {
		s.heads[i] = s.head(i, first)
	}
	return s
}

// put takes back a sweep that has ended.
func (l *sweeps) put(s *sweep) { l.spare = append(l.spare, s) }

// free ends those that were put back.
func (l *sweeps) free() {
	for _, s := range l.spare {
		s.free()
	}
	l.spare = nil
}

func newSweep(l *sweeps) *sweep {
	s := &sweep{volume: l.volume, lower: l.lower, heads: make([]head, len(l.volume.blocks.Parts))}
	s.waiter.Owner = s
	for i := range s.writes {
		w := &s.writes[i]
		w.sweep, w.op.Done = s, w.ended
	}
	return s
}

// position returns the first block that the sweep has not come to; noBlock: it has
// come to the end.
func (s *sweep) position() uint64 {
	if s.block != noBlock {
		return s.block
	}
	return s.next().block
}

// next returns the first of heads.
func (s *sweep) next() head {
	return slices.MinFunc(s.heads, func(a, b head) int { return cmp.Compare(a.block, b.block) })
}

func (s *sweep) free() {
	if s.gather != nil {
		_ = unix.Munmap(s.gather) // it was mapped here
		s.gather = nil
	}
}

func (s *sweep) key(block uint64) cache.Key {
	return cache.Key{LU: s.volume.config.LU, Block: block}
}

// head returns the first dirty block of a partition at or after from.
func (s *sweep) head(part int, from uint64) head {
	k, dirty := s.volume.blocks.Parts[part].NextDirty(s.key(from), s.key(s.end))
	if dirty == 0 {
		return head{block: noBlock}
	}
	return head{k.Block, dirty}
}

// part returns the partition of the block that is being looked at.
func (s *sweep) part() *blocks.Partition {
	return &s.volume.blocks.Parts[s.volume.blocks.Geometry.Partition(s.key(s.block))]
}

// Run implements evloop.Task.
func (s *sweep) Run() { s.run() }

// Resume implements blocks.Waiting.
func (s *sweep) Resume() { s.lower.loop.Post(s) }

// run takes the next batch.
func (s *sweep) run() {
	if !s.full && !s.collect() {
		return
	}
	if s.n == 0 {
		s.owner.swept(s)
		return
	}
	s.write()
}

// collect takes extents until there are enough, or no more. False: the sweep
// waits.
func (s *sweep) collect() bool {
	for s.room() {
		if s.block == noBlock && !s.visit() {
			return true
		}
		switch s.take() {
		case cache.Wait:
			return false
		case cache.Done:
			if s.n > 0 && s.patient && s.owed() {
				return true
			}
			s.leave()
		case cache.Granted:
			if s.owing == 0 {
				s.leave()
			}
		}
	}
	return true
}

// room reports whether another extent fits the batch.
func (s *sweep) room() bool {
	block := int64(s.volume.blocks.Geometry.BlockSize())
	return s.n < sweepExtents && s.count < sweepWrites && s.bytes+block <= sweepBytes
}

// visit goes to the next block that was dirty when it was found. What has become dirty
// there since then need not be written.
func (s *sweep) visit() bool {
	first := s.next()
	s.block, s.owing = first.block, first.dirty
	return first.block != noBlock
}

// leave goes on behind the block.
func (s *sweep) leave() {
	id := s.volume.blocks.Geometry.Partition(s.key(s.block))
	s.heads[id] = s.head(int(id), s.block+1)
	s.block = noBlock
}

// owed reports whether some of what was dirty still is.
func (s *sweep) owed() bool {
	_, dirty := s.part().NextDirty(s.key(s.block), s.key(s.block+1))
	s.owing &= dirty
	return s.owing != 0
}

// take takes the block's first dirty range that is in nobody's hands.
func (s *sweep) take() cache.Outcome {
	var w *cache.Waiter
	if s.patient && s.n == 0 {
		w = &s.waiter
	}
	run := s.part().TakeDirty(s.key(s.block), s.key(s.block+1), s.extents[s.n:s.n+1], w)
	if run.Outcome == cache.Granted && !s.harmed(&s.extents[s.n]) {
		s.add(&s.extents[s.n])
	}
	return run.Outcome
}

// harmed reports whether some of an extent is damaged: then it goes back, and what is
// sound of it comes again without the rest.
func (s *sweep) harmed(e *cache.Extent) bool {
	p := s.partOf(e)
	wrong := p.Wrong(e.Slot, e.Ones())
	if wrong == 0 {
		return false
	}
	s.volume.blocks.Harmed(p, e.Slot, e.Key, wrong)
	blocks.Wake(p.EndFlush(s.extents[s.n:s.n+1], false))
	return true
}

// add appends an extent to the last write, or begins another one.
func (s *sweep) add(e *cache.Extent) {
	s.owing &^= e.Ones()
	s.n++
	s.bytes += int64(e.Len)
	if s.count > 0 && s.joins(&s.writes[s.count-1], e) {
		return
	}
	w := &s.writes[s.count]
	w.first, w.end, w.straight, w.op.Off = s.n-1, s.n, true, s.offset(e)
	s.count++
}

// joins has a write have the extent too, if it is a neighbour: not while writing fails, for
// what is bad shall keep no neighbours from being written.
func (s *sweep) joins(w *sweepWrite, e *cache.Extent) bool {
	last := &s.extents[w.end-1]
	if s.offset(last)+int64(last.Len) != s.offset(e) || s.volume.room.failing.Load() {
		return false
	}
	straight := w.straight && s.follows(e, last)
	if !straight && !s.merges(w, last, e) {
		return false
	}
	w.end, w.straight = w.end+1, straight
	return true
}

// follows reports whether an extent lies behind a neighbour in memory.
func (s *sweep) follows(e, last *cache.Extent) bool {
	return e.Slot == last.Slot+1 && e.Off == 0 && s.partOf(e) == s.partOf(last)
}

// merges reports whether what a write has is worth a copy, with an extent behind it.
func (s *sweep) merges(w *sweepWrite, last, e *cache.Extent) bool {
	before := int64(last.Len)
	if w.straight {
		before = s.offset(e) - w.op.Off
	}
	return before < mergeBelow && e.Len < mergeBelow
}

// offset returns where an extent begins in the volume.
func (s *sweep) offset(e *cache.Extent) int64 {
	return int64(e.Key.Block)*int64(s.volume.blocks.Geometry.BlockSize()) + int64(e.Off)
}

// write starts the batch.
func (s *sweep) write() {
	s.pending = s.count + 1
	size, used := s.volume.store.Info().Size, 0
	for i := range s.writes[:s.count] {
		w := &s.writes[i]
		data := s.data(w, &used)
		if room := size - w.op.Off; room < int64(len(data)) {
			data = data[:room]
		}
		w.op.Kind, w.op.Data = backstore.Write, data
		if w.op.Err != nil || s.lower.begin(&w.op) {
			s.ended()
		}
	}
	s.ended()
}

// data returns the bytes of a write; used counts those of gather.
func (s *sweep) data(w *sweepWrite, used *int) []byte {
	w.op.Err = nil
	if w.straight {
		return s.straight(w)
	}
	if s.gather == nil {
		if s.gather, w.op.Err = arena.Map(sweepBytes, s.lower.loop.Memory()); w.op.Err != nil {
			return nil
		}
	}
	from := *used
	for i := w.first; i < w.end; i++ {
		*used += copy(s.gather[*used:], s.bytesOf(i))
	}
	return s.gather[from:*used]
}

// straight returns the memory of extents that lie behind each other.
func (s *sweep) straight(w *sweepWrite) []byte {
	first, last := &s.extents[w.first], &s.extents[w.end-1]
	n := last.Slot - first.Slot + 1
	end := int(n-1)*s.volume.blocks.Geometry.BlockSize() + int(last.Off+last.Len)
	return s.partOf(first).Run(first.Slot, n)[first.Off:end]
}

// bytesOf returns the memory of an extent.
func (s *sweep) bytesOf(i int) []byte {
	e := &s.extents[i]
	return s.partOf(e).Bytes(e.Slot)[e.Off : e.Off+e.Len]
}

func (s *sweep) partOf(e *cache.Extent) *blocks.Partition {
	return &s.volume.blocks.Parts[s.volume.blocks.Geometry.Partition(e.Key)]
}

// ended is op.Done.
func (w *sweepWrite) ended(*backstore.Op) { w.sweep.ended() }

// ended goes on when all of the batch has ended. What was not written stays
// dirty. The next batch waits for its turn, so that others have theirs.
func (s *sweep) ended() {
	if s.pending--; s.pending > 0 {
		return
	}
	before := s.written
	for i := range s.writes[:s.count] {
		s.settle(&s.writes[i])
	}
	if s.barren++; s.written > before {
		s.barren = 0
	}
	s.n, s.count, s.bytes = 0, 0, 0
	s.full = !s.owner.progressed(s)
	s.lower.loop.Post(s)
}

func (s *sweep) settle(w *sweepWrite) {
	stats := s.volume.counters
	ok := w.op.Err == nil
	if ok {
		stats.flushed.Add(uint64(len(w.op.Data)))
		s.written += int64(len(w.op.Data))
	} else {
		stats.flushErrors.Add(1)
		if s.err == nil {
			s.err, s.errOff = w.op.Err, w.op.Off
		}
	}
	w.op.Data = nil
	for i := w.first; i < w.end; i++ {
		e := &s.extents[i]
		blocks.Wake(s.partOf(e).EndFlush(s.extents[i:i+1], ok))
		if !ok && e.Key.Block == s.block {
			s.leave() // or it would be taken again
		}
	}
}
