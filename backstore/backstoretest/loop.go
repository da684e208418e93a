// Package backstoretest is the conformance test of a backstore.Store, and what
// tests need to use one from ordinary goroutines.
package backstoretest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// NewLoop runs an event loop until the test ends, with io_uring only if ring is
// set. Workers it has in any case.
func NewLoop(t testing.TB, ring bool) *evloop.Loop {
	t.Helper()
	config := evloop.Config{Name: "test", CPU: -1, Node: -1, Workers: evloop.NewWorkers(4)}
	if ring {
		config.RingEntries = 64
	}
	loop, err := evloop.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if ring && loop.Ring() == nil {
		t.Skip("the kernel refuses io_uring here")
	}
	go loop.Run()
	t.Cleanup(func() {
		config.Workers.Close()
		loop.Stop()
	})
	return loop
}

// On runs f on the loop's thread and waits for it.
func On(loop *evloop.Loop, f func()) {
	done := make(chan struct{})
	loop.Post(evloop.Func(func() {
		defer close(done)
		f()
	}))
	<-done
}

// Client is a lane for the use of other goroutines than the loop's.
type Client struct {
	Loop *evloop.Loop
	Lane backstore.Lane
}

// NewClient opens a lane of s on loop; it is closed when the test ends.
func NewClient(t testing.TB, s backstore.Store, loop *evloop.Loop) *Client {
	t.Helper()
	lane, err := s.Lane(loop)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{loop, lane}
	t.Cleanup(func() { On(loop, lane.Close) })
	return c
}

// Do performs op as a command does, with TryNow and then Submit, waits for its
// end and returns its error.
func (c *Client) Do(op backstore.Op) error { return c.Run(&op) }

// Run is Do for a caller that wants to see what became of op.
func (c *Client) Run(op *backstore.Op) error {
	done := make(chan struct{})
	c.start(op, done, false)
	<-done
	return op.Err
}

// Submit is Run without TryNow.
func (c *Client) Submit(op *backstore.Op) error {
	done := make(chan struct{})
	c.start(op, done, true)
	<-done
	return op.Err
}

// Go starts op; the channel closes when it has ended.
func (c *Client) Go(op *backstore.Op) <-chan struct{} {
	done := make(chan struct{})
	c.start(op, done, false)
	return done
}

// start begins op on the loop. A Done from inside Submit closes the channel
// twice and so fails the test.
func (c *Client) start(op *backstore.Op, done chan struct{}, later bool) {
	c.Loop.Post(evloop.Func(func() {
		inside := true
		op.Done = func(*backstore.Op) {
			if inside {
				panic("backstoretest: Done was called from inside Submit")
			}
			close(done)
		}
		ended := !later && c.Lane.TryNow(op) || c.Lane.Submit(op)
		inside = false
		if ended {
			close(done)
		}
	}))
}

// Fataler is what a testing.T and a rapid.T have in common here.
type Fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Read returns n bytes at off.
func (c *Client) Read(t Fataler, off int64, n int) []byte {
	t.Helper()
	data := Buffer(n)
	copy(data, bytes.Repeat([]byte{0xa5}, n)) // what a store forgets to fill shows
	if err := c.Do(backstore.Op{Kind: backstore.Read, Off: off, Data: data}); err != nil {
		t.Fatalf("read %d bytes at %d: %v", n, off, err)
	}
	return data
}

// Write stores data, which need not be aligned, at off.
func (c *Client) Write(t Fataler, off int64, data []byte) {
	t.Helper()
	aligned := Buffer(len(data))
	copy(aligned, data)
	if err := c.Do(backstore.Op{Kind: backstore.Write, Off: off, Data: aligned}); err != nil {
		t.Fatalf("write %d bytes at %d: %v", len(data), off, err)
	}
}

// Must performs op and fails the test if it fails.
func (c *Client) Must(t Fataler, op backstore.Op) {
	t.Helper()
	if err := c.Do(op); err != nil {
		t.Fatalf("%v at %d: %v", op.Kind, op.Off, err)
	}
}

// Buffer returns n bytes, aligned to pages as Submit wants them.
func Buffer(n int) []byte {
	const page = 4096
	b := make([]byte, n+page)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	return b[skip : skip+n : skip+n]
}

// patternPeriod is after how many bytes a Pattern repeats: a prime, so that no
// two pages of it are alike.
const patternPeriod = 4099

// Pattern returns n bytes that seed decides, none of them zero.
func Pattern(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := Buffer(n)
	var period [patternPeriod + 7]byte
	for i := 0; i < patternPeriod; i += 8 {
		binary.NativeEndian.PutUint64(period[i:], r.Uint64()|0x0101010101010101)
	}
	for rest := b; len(rest) > 0; {
		rest = rest[copy(rest, period[:patternPeriod]):]
	}
	return b
}
