// Package profile measures what a store can do: random reads of 4 KiB at a
// fixed depth, in the way in which an event thread reads.
package profile

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/evloop"
)

// BlockSize is what each read takes, in bytes: the unit of a token.
const BlockSize = 4096

// Config says how to measure.
type Config struct {
	Depth    int           // reads under way at once
	Duration time.Duration // after which no more reads begin
	Logger   *slog.Logger  // nil is slog.Default
}

// Result is what was measured.
type Result struct {
	Reads   int64
	Elapsed time.Duration // from the first read's begin to the last one's end
}

// IOPS are the reads per second.
func (r Result) IOPS() int64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return int64(float64(r.Reads) / r.Elapsed.Seconds())
}

// Measure reads from a store that nobody else uses, which it neither changes
// nor closes. A read that fails ends it with that error.
func Measure(s backstore.Store, c Config) (Result, error) {
	m := &measurement{blocks: s.Info().Size / BlockSize, duration: int64(c.Duration), ended: make(chan struct{})}
	if m.blocks == 0 {
		return Result{}, fmt.Errorf("profile: found a store of %d bytes, expected at least %d", s.Info().Size, BlockSize)
	}
	workers := evloop.NewWorkers(c.Depth)
	defer workers.Close()
	loop, err := evloop.New(evloop.Config{
		Name: "profile", CPU: -1, Node: -1, Buffers: c.Depth * BlockSize,
		RingEntries: ringEntries, Workers: workers, Logger: c.Logger,
	})
	if err != nil {
		return Result{}, err
	}
	if m.lane, err = s.Lane(loop); err != nil {
		loop.Stop()
		return Result{}, err
	}
	m.loop = loop
	go loop.Run()
	defer loop.Stop()
	loop.Post(evloop.Func(func() { m.begin(c.Depth) }))
	<-m.ended
	return m.result, m.err
}

// ringEntries are the submissions that the ring takes per pass of the loop.
const ringEntries = 64

// measurement is one run. All but ended belongs to the loop's thread until
// that is closed.
type measurement struct {
	loop     *evloop.Loop
	lane     backstore.Lane
	blocks   int64
	duration int64 // ns
	began    int64
	readers  int // that have not left
	result   Result
	err      error
	ended    chan struct{}
}

func (m *measurement) begin(depth int) {
	m.began, m.readers = evloop.Monotonic(), depth
	for range depth {
		r := &reader{m: m, data: m.loop.Pool().Get(BlockSize)}
		r.op = backstore.Op{Data: r.data.Bytes(), Done: r.done}
		m.loop.Again(r)
	}
}

// count notes that a read has ended.
func (m *measurement) count(op *backstore.Op) {
	if op.Err != nil {
		m.err = errors.Join(m.err, fmt.Errorf("profile: read at %d: %w", op.Off, op.Err))
		return
	}
	m.result.Reads++
	m.result.Elapsed = time.Duration(evloop.Monotonic() - m.began)
}

func (m *measurement) over() bool {
	return m.err != nil || evloop.Monotonic()-m.began >= m.duration
}

// leave is called by each reader when the time is over.
func (m *measurement) leave() {
	if m.readers--; m.readers == 0 {
		m.lane.Close()
		close(m.ended)
	}
}

// reader keeps one read under way.
type reader struct {
	m    *measurement
	op   backstore.Op
	data *buf.Ref
}

// Run starts the next read. One that ends at once is followed by another in
// the loop's next pass, so that those under way are seen to.
func (r *reader) Run() {
	if r.m.over() {
		r.data.Release()
		r.m.leave()
		return
	}
	r.op.Kind, r.op.Off, r.op.Err = backstore.Read, rand.Int64N(r.m.blocks)*BlockSize, nil
	if r.m.lane.TryNow(&r.op) || r.m.lane.Submit(&r.op) {
		r.m.count(&r.op)
		r.m.loop.Again(r)
	}
}

func (r *reader) done(op *backstore.Op) {
	r.m.count(op)
	r.m.loop.AtPassEnd(r)
}
