//go:build linux && cgo && rbd

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/evloop"
)

const blockBytes = 4096

// load keeps operations under way at random blocks of a store, on one event thread. Each
// block holds its number and how often it was written, all over.
type load struct {
	loop     *evloop.Loop
	lane     backstore.Lane
	blocks   int64
	writes   int // of 16 operations, so many
	written  []uint32
	busy     []bool
	verified bool

	ops     int64
	last    int64 // when an operation ended, ns
	gap     int64 // longest time between two ends
	slowest int64 // longest operation
	err     error
	random  *rand.Rand
	running int
	stop    bool
	ended   chan struct{}
}

// user has one operation under way after the other.
type user struct {
	*load
	op    backstore.Op
	block int64
	began int64
}

func newLoad(store backstore.Store) (*load, error) {
	workers := evloop.NewWorkers(1)
	loop, err := evloop.New(evloop.Config{Name: "load", CPU: -1, Node: -1, Workers: workers})
	if err != nil {
		return nil, err
	}
	go loop.Run()
	l := &load{loop: loop, blocks: store.Info().Size / blockBytes, random: rand.New(rand.NewPCG(1, 2))}
	l.written, l.busy = make([]uint32, l.blocks), make([]bool, l.blocks)
	if l.lane, err = store.Lane(loop); err != nil {
		return nil, err
	}
	return l, nil
}

// memory is not of Go's heap.
func memory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	return b
}

// run keeps depth operations under way for some time, calling during meanwhile.
func (l *load) run(depth, writes int, verified bool, during func()) error {
	l.ops, l.gap, l.slowest, l.stop, l.err = 0, 0, 0, false, nil
	l.writes, l.verified, l.running, l.ended = writes, verified, depth, make(chan struct{})
	l.on(func() {
		l.last = evloop.Monotonic()
		for range depth {
			u := &user{load: l}
			u.op.Done = u.done
			u.op.Data = memory(blockBytes)
			u.next()
		}
	})
	during()
	l.on(func() { l.stop = true })
	<-l.ended
	return l.err
}

func (l *load) on(f func()) {
	done := make(chan struct{})
	l.loop.Post(evloop.Func(func() { f(); close(done) }))
	<-done
}

func (u *user) next() {
	for u.block = u.random.Int64N(u.blocks); u.verified && u.busy[u.block]; u.block = u.random.Int64N(u.blocks) {
	}
	u.busy[u.block] = true
	u.op.Kind, u.op.Off, u.op.Err = backstore.Read, u.block*blockBytes, nil
	if u.random.IntN(16) < u.writes {
		u.op.Kind = backstore.Write
		if u.verified {
			u.fill(u.written[u.block] + 1)
		}
	}
	u.began = evloop.Monotonic()
	if u.lane.TryNow(&u.op) || u.lane.Submit(&u.op) {
		u.op.Err = errors.Join(u.op.Err, errors.New("an operation ended at once"))
		u.done(&u.op)
	}
}

func (u *user) fill(generation uint32) {
	for i := 0; i < blockBytes; i += 8 {
		binary.LittleEndian.PutUint64(u.op.Data[i:], uint64(u.block)<<32|uint64(generation))
	}
}

func (u *user) check() error {
	want := uint64(u.block)<<32 | uint64(u.written[u.block])
	if u.written[u.block] == 0 {
		want = 0
	}
	for i := 0; i < blockBytes; i += 8 {
		if got := binary.LittleEndian.Uint64(u.op.Data[i:]); got != want {
			return fmt.Errorf("block %d, byte %d: found %x, expected %x", u.block, i, got, want)
		}
	}
	return nil
}

func (u *user) done(op *backstore.Op) {
	now := evloop.Monotonic()
	u.ops++
	u.gap, u.slowest, u.last = max(u.gap, now-u.last), max(u.slowest, now-u.began), now
	switch {
	case op.Err != nil:
	case u.verified && op.Kind == backstore.Write:
		u.written[u.block]++
	case u.verified:
		op.Err = u.check()
	}
	u.busy[u.block] = false
	u.err = errors.Join(u.err, op.Err)
	if !u.stop && u.err == nil {
		u.next()
		return
	}
	_ = unix.Munmap(op.Data)
	if u.running--; u.running == 0 {
		close(u.ended)
	}
}

// close ends the load; the store is idle then.
func (l *load) close() {
	l.on(l.lane.Close)
	l.loop.Workers().Close()
	l.loop.Stop()
}

// processTime is the CPU time of this process.
func processTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// read reads and checks the block of a user.
func (l *load) read(u *user) error {
	ended := make(chan struct{})
	u.op.Done = func(*backstore.Op) { close(ended) }
	l.on(func() {
		if l.lane.Submit(&u.op) {
			close(ended)
		}
	})
	<-ended
	defer unix.Munmap(u.op.Data)
	if u.op.Err != nil {
		return u.op.Err
	}
	return u.check()
}
