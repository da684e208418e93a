package bulk

import (
	"errors"
	"sync"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Volume reads and writes a store from any goroutine, by a lane of its own on an event
// thread that serves no initiators. Each call waits for its end.
type Volume struct {
	loop *evloop.Loop
	info backstore.Info
	lane backstore.Lane

	mu     sync.Mutex
	mapped [2]int64 // from where to where the store has data, as it has said last
}

// piece is the most that one operation reads or writes, as for commands of initiators.
const piece = 256 << 10

// OpenVolume opens a lane. Close closes it; the store stays the caller's.
func OpenVolume(loop *evloop.Loop, store backstore.Store) (*Volume, error) {
	v := &Volume{loop: loop, info: store.Info()}
	var err error
	v.run(func() { v.lane, err = store.Lane(loop) })
	return v, err
}

// run runs f on the event thread and waits for it.
func (v *Volume) run(f func()) {
	done := make(chan struct{})
	v.loop.Post(evloop.Func(func() {
		defer close(done)
		f()
	}))
	<-done
}

// Info returns what the store said of itself when it was opened.
func (v *Volume) Info() backstore.Info { return v.info }

// Close closes the lane. Nothing may be under way.
func (v *Volume) Close() { v.run(v.lane.Close) }

// Read fills b, which is off-heap and aligned to pages, from off.
func (v *Volume) Read(b []byte, off int64) error { return v.pieces(backstore.Read, b, off) }

// Write stores b, which is off-heap and aligned to pages, at off.
func (v *Volume) Write(b []byte, off int64) error { return v.pieces(backstore.Write, b, off) }

// Zero makes n bytes from off read as zeroes, without taking space where the store can.
func (v *Volume) Zero(off, n int64) error {
	if v.info.Discard && v.info.DiscardZeroes && off%int64(max(v.info.DiscardGran, 1)) == 0 {
		if v.do(backstore.Op{Kind: backstore.Discard, Off: off, Len: n}) == nil {
			return nil
		}
	}
	return v.do(backstore.Op{Kind: backstore.WriteZeroes, Off: off, Len: n})
}

// Flush makes everything stable that was written.
func (v *Volume) Flush() error { return v.do(backstore.Op{Kind: backstore.Flush}) }

// mapSpan is what a store is asked about at a time. A file system looks for the end of the data
// however far that is, each time it is asked; others look at each part.
const mapSpan = 1 << 30

// Unmapped reports whether nothing was ever stored in n bytes from off, or was given back:
// they read as zeroes. False: perhaps not.
func (v *Volume) Unmapped(off, n int64) bool {
	if !v.info.Thin {
		return false
	}
	v.mu.Lock()
	known := off >= v.mapped[0] && off < v.mapped[1]
	v.mu.Unlock()
	if known {
		return false
	}
	op := backstore.Op{Kind: backstore.Map, Off: off, Len: min(v.info.Size-off, mapSpan)}
	if v.submit([]*backstore.Op{&op}) != nil {
		return false
	}
	if op.Mapped {
		v.mu.Lock()
		v.mapped = [2]int64{off, off + op.Len}
		v.mu.Unlock()
	}
	return !op.Mapped && op.Len >= n
}

func (v *Volume) pieces(kind backstore.Kind, b []byte, off int64) error {
	var ops []*backstore.Op
	for at := 0; at < len(b); at += piece {
		ops = append(ops, &backstore.Op{Kind: kind, Off: off + int64(at), Data: b[at:min(at+piece, len(b))]})
	}
	return v.submit(ops)
}

func (v *Volume) do(op backstore.Op) error { return v.submit([]*backstore.Op{&op}) }

// submit does all operations and returns when the last one has ended.
func (v *Volume) submit(ops []*backstore.Op) (err error) {
	var under sync.WaitGroup
	under.Add(len(ops))
	v.loop.Post(evloop.Func(func() {
		for _, op := range ops {
			op.Done = func(*backstore.Op) { under.Done() }
			if v.lane.TryNow(op) || v.lane.Submit(op) {
				under.Done()
			}
		}
	}))
	under.Wait()
	for _, op := range ops {
		err = errors.Join(err, op.Err)
	}
	return err
}
