package windows

import (
	"errors"
	"fmt"
	"sync"

	"lunar/backstore"
	"lunar/internal/arena"
	"lunar/internal/evloop"
)

// engine is an event loop of a store's own, for what its goroutines do below, with the
// goroutines on which changes, and reads of more than one place, run.
type engine struct {
	loop    *evloop.Loop
	calls   *evloop.Workers // of the loop
	changes *evloop.Workers
	reads   *evloop.Workers // do not wait behind changes
	ended   chan struct{}
}

// together is how many changes run at a time.
const together = 16

func newEngine(name string) (*engine, error) {
	e := &engine{calls: evloop.NewWorkers(together), ended: make(chan struct{})}
	loop, err := evloop.New(evloop.Config{Name: name, CPU: -1, Node: -1, RingEntries: 128, Workers: e.calls})
	if err != nil {
		e.calls.Close()
		return nil, err
	}
	e.loop, e.changes, e.reads = loop, evloop.NewWorkers(together), evloop.NewWorkers(together/2)
	go func() {
		defer close(e.ended)
		loop.Run()
	}()
	return e, nil
}

// close ends the loop and the goroutines; nothing may run.
func (e *engine) close() {
	e.changes.Close()
	e.reads.Close()
	e.calls.Close()
	e.loop.Stop()
	<-e.ended
}

// disk is a store that goroutines use, who wait for the ends of their operations.
type disk struct {
	store backstore.Store
	loop  *evloop.Loop
	lane  backstore.Lane
	calls sync.Pool
}

func newDisk(s backstore.Store, e *engine) (*disk, error) {
	lane, err := s.Lane(e.loop)
	if err != nil {
		return nil, err
	}
	d := &disk{store: s, loop: e.loop, lane: lane}
	d.calls.New = func() any {
		c := &call{disk: d, ended: make(chan struct{}, 1)}
		c.op.Done = func(*backstore.Op) { c.ended <- struct{}{} }
		return c
	}
	return d, nil
}

// close closes the lane; the store stays open.
func (d *disk) close() {
	done := make(chan struct{})
	d.loop.Post(evloop.Func(func() {
		d.lane.Close()
		close(done)
	}))
	<-done
}

// call is an operation of a goroutine.
type call struct {
	disk  *disk
	op    backstore.Op
	ended chan struct{}
}

// Run implements evloop.Task.
func (c *call) Run() {
	if c.disk.lane.TryNow(&c.op) || c.disk.lane.Submit(&c.op) {
		c.ended <- struct{}{}
	}
}

// do performs an operation and returns its error. What else it results in is in op then.
func (d *disk) do(op *backstore.Op) error {
	c := d.calls.Get().(*call)
	done := c.op.Done
	c.op.Kind, c.op.FUA, c.op.Atomic = op.Kind, op.FUA, op.Atomic
	c.op.Off, c.op.Len, c.op.Data = op.Off, op.Len, op.Data
	c.op.Err, c.op.Done = nil, done
	d.loop.Post(c)
	<-c.ended
	op.Mapped, op.Len, op.Err = c.op.Mapped, c.op.Len, c.op.Err
	c.op.Data = nil
	d.calls.Put(c)
	return op.Err
}

func (d *disk) read(off int64, data []byte) error {
	return d.do(&backstore.Op{Kind: backstore.Read, Off: off, Data: data})
}

func (d *disk) write(off int64, data []byte, fua bool) error {
	return d.do(&backstore.Op{Kind: backstore.Write, Off: off, Data: data, FUA: fua})
}

func (d *disk) flush() error { return d.do(&backstore.Op{Kind: backstore.Flush}) }

// zero zeroes a range, or releases it where at says that and it reads as zeroes then.
func (d *disk) zero(e extent) error {
	kind, info := backstore.WriteZeroes, d.store.Info()
	if e.at == discarded && info.Discard && info.DiscardZeroes {
		kind = backstore.Discard
	}
	return d.do(&backstore.Op{Kind: kind, Off: e.off, Len: e.n})
}

// extentAt returns how far the range at off is provisioned, or not. A store that cannot
// tell has all of it.
func extentAt(d *disk, off, end int64) (n int64, mapped bool) {
	op := backstore.Op{Kind: backstore.Map, Off: off, Len: end - off}
	if d.do(&op) != nil || op.Len <= 0 {
		return end - off, true
	}
	return op.Len, op.Mapped
}

// clearMost bounds what is zeroed at once, in bytes.
const clearMost = 64 << 20

// errClosed says that the store was closed meanwhile.
var errClosed = errors.New("the volume is closed")

// clear makes a range read as zeroes, piece by piece, and stable, unless quit ends that. What
// is not provisioned does so already.
func (d *disk) clear(off, end int64, quit <-chan struct{}) error {
	if off >= end {
		return nil
	}
	for off < end {
		select {
		case <-quit:
			return errClosed
		default:
		}
		n, mapped := extentAt(d, off, min(end, off+clearMost))
		if mapped {
			if err := d.zero(extent{off: off, n: n, at: zeroed}); err != nil {
				return err
			}
		}
		off += n
	}
	return d.flush()
}

// chunk bounds what is copied at once, in bytes.
const chunk = 256 << 10

// scratch is memory for copies, in pieces of one size.
type scratch struct {
	memory *arena.Arena
	free   chan []byte
}

// newScratch returns n pieces of size bytes, a multiple of the page.
func newScratch(n int, size int64) (*scratch, error) {
	a, err := arena.Open(arena.Options{Bytes: int64(n) * size, Node: -1, Threads: 1})
	if err != nil {
		return nil, fmt.Errorf("memory for copies: %w", err)
	}
	s := &scratch{a, make(chan []byte, n)}
	for i := range int64(n) {
		s.free <- a.Bytes()[i*size : (i+1)*size : (i+1)*size]
	}
	return s, nil
}

// take waits for a piece.
func (s *scratch) take() []byte  { return <-s.free }
func (s *scratch) give(b []byte) { s.free <- b[:cap(b)] }
func (s *scratch) close() error  { return s.memory.Close() }
