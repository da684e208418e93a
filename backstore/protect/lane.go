package protect

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// lane is an event thread's access: a lane of the data and one of the tuples.
type lane struct {
	store        *Store
	loop         *evloop.Loop
	data, tuples backstore.Lane
	free         []*job
}

// TryNow implements backstore.Lane: two stores cannot do one thing at once.
func (l *lane) TryNow(op *backstore.Op) bool {
	return ofData(op) && l.data.TryNow(op)
}

// ofData reports whether op has nothing to do with tuples.
func ofData(op *backstore.Op) bool { return op.Kind == backstore.Map || op.Kind == backstore.Wipe }

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	info := l.store.bounds()
	if ofData(op) {
		return l.data.Submit(op)
	}
	if op.Err = backstore.Check(op, &info); op.Err != nil || op.Length() == 0 && op.Kind != backstore.Flush {
		return true
	}
	return l.job(op).claim()
}

// Close implements backstore.Lane.
func (l *lane) Close() {
	l.data.Close()
	l.tuples.Close()
	for _, j := range l.free {
		_ = unix.Munmap(j.buffer)
	}
	l.free = nil
}

// bufferSize is the least memory for tuples of a job: those of 256 KiB in blocks
// of 512 bytes.
const bufferSize = 4096

// job is an operation under way.
type job struct {
	lane    *lane
	op      *backstore.Op
	blocks  claim // the blocks
	entry   entry // the regions
	data    backstore.Op
	tuples  backstore.Op
	done    func(*backstore.Op) // part, made once
	buffer  []byte              // off-heap
	pending int                 // parts that have not ended
	inline  bool                // launch has not returned
	step    step
	mending *mending // nil: nothing has failed
}

// step is what a job is doing. Data are written before their tuples, so that data
// that are refused leave the tuples of before.
type step uint8

const (
	both       step = iota // a read or a flush of data and tuples
	writesData             // a change
	writesTuples
	cleans     // a flush, after which regions are clean
	mendReads  // data and tuples, after a change that failed
	mendWrites // tuples
)

// job returns one for op with room for its tuples.
func (l *lane) job(op *backstore.Op) *job {
	var j *job
	if n := len(l.free); n > 0 {
		j, l.free = l.free[n-1], l.free[:n-1]
	} else {
		j = &job{lane: l}
		j.done = j.part
		j.entry.loop, j.entry.then = l.loop, (*entered)(j)
		j.blocks.loop, j.blocks.then = l.loop, (*claimed)(j)
	}
	j.op = op
	return j
}

// claim waits for the blocks and goes on. Like all steps it reports whether the
// operation has ended.
func (j *job) claim() bool {
	op, s := j.op, j.lane.store
	if op.Kind == backstore.Flush {
		return j.start()
	}
	j.blocks.from, j.blocks.to, j.blocks.writes = op.Off, op.Off+op.Length(), op.Kind.Changes()
	return s.ranges.take(&j.blocks) && j.enter()
}

// claimed is a job that has its blocks after a wait.
type claimed job

// Run implements evloop.Task.
func (c *claimed) Run() {
	j := (*job)(c)
	if op := j.op; j.enter() {
		op.Done(op)
	}
}

// enter waits until the log says that the regions are being changed. The volume may
// have become smaller before it got its blocks.
func (j *job) enter() bool {
	if end := j.lane.store.end.Load(); j.blocks.to > end {
		j.end(fmt.Errorf("%v of %d bytes at %d, where the end is %d: %w", j.op.Kind, j.op.Length(), j.op.Off, end, backstore.ErrOutOfRange))
		return true
	}
	if j.op.Kind.Changes() {
		regions := j.lane.store.regions
		j.entry.first, j.entry.last = regions.span(j.op.Off, j.op.Length())
		if !regions.enter(&j.entry) {
			return false
		}
	}
	return j.start()
}

// entered is a job whose change may begin, or not.
type entered job

// Run implements evloop.Task.
func (e *entered) Run() {
	j := (*job)(e)
	op, ended := j.op, true
	if err := j.entry.err; err != nil {
		j.entry.err = nil
		j.end(err)
	} else {
		ended = j.start()
	}
	if ended {
		op.Done(op)
	}
}

// start begins the operation, and reports whether it has ended.
func (j *job) start() bool {
	if err := j.prepare(); err != nil {
		if j.op.Kind.Changes() {
			j.lane.store.regions.leave(j.entry.first, j.entry.last)
		}
		j.end(err)
		return true
	}
	return j.launch()
}

// launch begins the parts of a step, and reports whether the operation has ended.
func (j *job) launch() bool {
	j.inline = true
	switch j.step {
	case writesData:
		j.pending = 1
		j.submit(j.lane.data, &j.data)
	case writesTuples, mendWrites:
		j.pending = 1
		j.submit(j.lane.tuples, &j.tuples)
	default:
		j.pending = 2
		j.submit(j.lane.data, &j.data)
		j.submit(j.lane.tuples, &j.tuples)
	}
	j.inline = false
	return j.pending == 0 && j.finish()
}

func (j *job) submit(l backstore.Lane, part *backstore.Op) {
	if l.TryNow(part) || l.Submit(part) {
		j.pending--
	}
}

// part is Done of all parts.
func (j *job) part(*backstore.Op) {
	j.pending--
	if j.pending > 0 || j.inline {
		return
	}
	if op := j.op; j.finish() {
		op.Done(op)
	}
}

// prepare makes the parts.
func (j *job) prepare() error {
	op, s := j.op, j.lane.store.shape
	j.data = backstore.Op{Kind: op.Kind, FUA: op.FUA, Atomic: op.Atomic, Off: op.Off, Len: op.Len, Data: op.Data, Done: j.done}
	j.tuples = backstore.Op{Kind: op.Kind, FUA: op.FUA, Done: j.done}
	j.step = both
	if op.Kind == backstore.Flush {
		if op.Len == 0 && j.lane.store.regions.beginFlush(j.lane.loop.Now()) {
			j.step = cleans
		}
		return nil
	}
	if op.Kind.Changes() {
		j.step = writesData
	}
	first, n := op.Off/int64(s.block), op.Length()/int64(s.block)
	j.tuples.Off, j.tuples.Len = tupleOffset+first*TupleSize, n*TupleSize
	switch op.Kind {
	case backstore.Read, backstore.Write:
		if err := j.reserve(int(j.tuples.Len)); err != nil {
			return err
		}
		j.tuples.Data = j.buffer[:j.tuples.Len]
		if op.Kind == backstore.Write {
			j.fill(uint32(first))
		}
	default:
		j.tuples.Kind = backstore.WriteZeroes // the escape
	}
	return nil
}

// reserve gets room for n bytes of tuples.
func (j *job) reserve(n int) (err error) {
	if n <= len(j.buffer) {
		return nil
	}
	if j.buffer != nil {
		_ = unix.Munmap(j.buffer)
	}
	n = max(bufferSize, (n+4095)&^4095)
	if j.buffer, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		j.buffer = nil
		return fmt.Errorf("memory for %d bytes of protection information: %w", n, err)
	}
	return nil
}

// fill puts the tuples of a write, of which the first block is first, in place.
func (j *job) fill(first uint32) {
	s, tuples := j.lane.store.shape, j.tuples.Data
	if j.op.Tuples != nil {
		copy(tuples, j.op.Tuples)
	} else {
		Generate(s.kind, s.block, j.op.Data, tuples, first)
	}
	invert(tuples)
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// finish follows the parts of a step: it goes on with the next one, or ends the
// operation.
func (j *job) finish() bool {
	switch j.step {
	case writesData:
		if j.data.Err != nil {
			return j.beginMend(j.data.Err)
		}
		j.step = writesTuples
		return j.launch()
	case writesTuples:
		return j.changed(j.tuples.Err)
	case mendReads:
		return j.mendRead()
	case mendWrites:
		j.mending.at += int64(len(j.mending.data))
		return j.mendNext()
	}
	err := j.data.Err
	if err == nil {
		err = j.tuples.Err
	}
	switch {
	case j.op.Kind == backstore.Read:
		j.op.Hit = j.data.Hit
		if err == nil {
			err = j.check()
		}
	case err != nil:
		j.lane.store.regions.unsound.Store(true)
	}
	if j.step == cleans {
		j.lane.store.regions.endFlush(j.lane.loop.Now(), err == nil)
	}
	j.end(err)
	return true
}

// changed ends a change, unless it is time to clean regions, which the operation then
// waits for: so there is never something under way that nobody waits for.
func (j *job) changed(err error) bool {
	regions := j.lane.store.regions
	regions.leave(j.entry.first, j.entry.last)
	if err == nil && regions.beginFlush(j.lane.loop.Now()) {
		j.step = cleans
		j.data = backstore.Op{Kind: backstore.Flush, Done: j.done}
		j.tuples = backstore.Op{Kind: backstore.Flush, Done: j.done}
		return j.launch()
	}
	j.end(err)
	return true
}

// end gives the result to the operation and keeps the job for another one.
func (j *job) end(err error) {
	op := j.op
	op.Err = err
	if op.Kind != backstore.Flush {
		j.lane.store.ranges.release(&j.blocks)
	}
	j.data.Data, j.tuples.Data = nil, nil
	j.lane.free = append(j.lane.free, j)
}

// check compares what was read with its tuples, and hands them out.
func (j *job) check() error {
	op, s, tuples := j.op, j.lane.store, j.tuples.Data
	invert(tuples)
	if op.Tuples != nil {
		copy(op.Tuples, tuples)
	}
	if op.Unchecked {
		return nil
	}
	first := uint64(op.Off) / uint64(s.shape.block)
	checks := Checks{Guard: true, Ref: s.shape.kind == Type1}
	at, wrong := checks.Check(s.shape.kind, s.shape.block, op.Data, tuples, uint32(first))
	if wrong == 0 {
		return nil
	}
	s.wrong.Add(1)
	return &CheckError{LBA: first + uint64(at), Field: wrong}
}
