// Command latency measures reads beside writes on stores of a known speed: on one alone, on
// a mirror of two, and on one with a fast device for writes in excess. It writes a page.
package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/backstore/windows"
	"lunar/internal/arena"
	"lunar/internal/evloop"
)

// The load: writes come in bursts at fixed times, as those of a flusher do, and each reader
// reads again some time after its last read.
const (
	size      = 256 << 20
	writeSize = 64 << 10
	burst     = 8
	every     = 240 * time.Millisecond
	readSize  = 4 << 10
	readers   = 4
	thinks    = 5 * time.Millisecond
	lasts     = 9 * time.Second
)

// The devices: what a command takes, and a byte of a write.
const (
	command   = 400 * time.Microsecond
	perByte   = 125 * time.Nanosecond
	fastShare = 10 // the fast device is so many times as fast
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

// variant is a way to make one store of slow ones.
type variant struct {
	name string
	open func(dir string) (backstore.Store, error)
}

var variants = []variant{
	{"one store", func(dir string) (backstore.Store, error) { return file(dir, "one", size, 1) }},
	{"`type: mirror` of two such stores, `window: 2s`", openMirror},
	{"one such store with `excess`, `excess-writes: 50`", openExcess},
}

func run() error {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	dir, err := os.MkdirTemp("/dev/shm", "lunar-latency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf(`# Read latency beside writes

Written by `+"`make evidence-latency`"+`. Files in memory behind queues of a known speed, each in order of arrival: a command takes %v, and a byte of a write %v. The excess device is %d times as fast. %d writes of %d KiB come every %v, at random places; %d readers read %d KiB at random places, each %v after its last read. %v for each row; the rows take turns, two rounds. What a read takes for who asked has the waits of this machine's CPUs in it, on which others work, too; what it takes in the devices has not.

| store | round | reads | read p50 | read p99 | by one store | in the devices p99 | by one store | write p50 | write p99 |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`, command, perByte, fastShare, burst, writeSize>>10, every, readers, readSize>>10, thinks, lasts)
	for round := 1; round <= 2; round++ {
		var base, device time.Duration
		for _, v := range variants {
			m, err := v.measure(dir)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if base == 0 {
				base, device = m.read(.99), quantile(m.device, .99)
			}
			fmt.Printf("| %s | %d | %d | %v | %v | %.2f | %v | %.3f | %v | %v |\n", v.name, round, len(m.reads), m.read(.5), m.read(.99), share(m.read(.99), base),
				quantile(m.device, .99), share(quantile(m.device, .99), device), quantile(m.writes, .5), quantile(m.writes, .99))
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Printf("\nBuilt by %s.\n", info.GoVersion)
	}
	return nil
}

func share(a, b time.Duration) float64 { return float64(a) / float64(b) }

func file(dir, name string, n int64, speed int) (backstore.Store, error) {
	s, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, name), Size: n})
	if err != nil {
		return nil, err
	}
	st := &station{speed: time.Duration(speed)}
	stations = append(stations, st)
	return &throttled{Store: s, station: st}, nil
}

// stations are those of the store that is measured.
var stations []*station

func openMirror(dir string) (backstore.Store, error) {
	chart, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "map"), Size: windows.MapSize})
	if err != nil {
		return nil, err
	}
	c := windows.MirrorConfig{Name: "mirror", Map: chart, Held: 64 << 20, Window: 2 * time.Second}
	for i, name := range []string{"a", "b"} {
		c.Members[i] = windows.Member{Name: name, Open: func() (backstore.Store, error) { return file(dir, name, size, 1) }}
	}
	m, err := windows.OpenMirror(c)
	for err == nil && (m.Status().Behind > 0 || len(m.Troubles()) > 0) { // of a fresh pair
		time.Sleep(10 * time.Millisecond)
	}
	return m, err
}

func openExcess(dir string) (backstore.Store, error) {
	slow, err := file(dir, "slow", size, 1)
	if err != nil {
		return nil, err
	}
	fast, err := file(dir, "fast", 1<<30, fastShare)
	if err != nil {
		return nil, err
	}
	return windows.OpenExcess(windows.ExcessConfig{Name: "excess", Slow: slow, Fast: fast, Writes: 1, Window: 20 * time.Millisecond})
}

// measured is how long commands took.
type measured struct {
	reads, writes []time.Duration // for who asked
	device        []time.Duration // reads, in the devices' queues and in the devices
}

func (m *measured) read(q float64) time.Duration { return quantile(m.reads, q) }

func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))].Round(10 * time.Microsecond)
}

// measure loads a store. Its threads end before it is closed.
func (v *variant) measure(dir string) (m measured, err error) {
	store, err := v.open(dir)
	if err != nil {
		return m, err
	}
	loop, err := evloop.New(evloop.Config{Name: "load", CPU: -1, Node: -1, Workers: evloop.NewWorkers(0)})
	if err != nil {
		return m, err
	}
	go loop.Run()
	lane, err := store.Lane(loop)
	if err != nil {
		return m, err
	}
	l := &load{loop: loop, lane: lane, until: time.Now().Add(lasts)}
	if l.memory, err = arena.Open(arena.Options{Bytes: readers*readSize + 2*burst*writeSize, Node: -1, Threads: 1}); err != nil {
		return m, err
	}
	l.drive()
	for _, st := range stations {
		l.device = append(l.device, st.reads...)
	}
	stations = nil
	done := make(chan struct{})
	loop.Post(evloop.Func(func() {
		lane.Close()
		close(done)
	}))
	<-done
	loop.Stop()
	return l.measured, store.Close()
}

// load is what is done to a store.
type load struct {
	loop   *evloop.Loop
	lane   backstore.Lane
	memory *arena.Arena
	until  time.Time
	mu     sync.Mutex
	measured
	failed error
}

func (l *load) drive() {
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			data := l.memory.Bytes()[i*readSize:][:readSize]
			for time.Now().Before(l.until) {
				l.do(&backstore.Op{Kind: backstore.Read, Off: r.Int64N(size/readSize) * readSize, Data: data}, &l.reads, time.Now())
				time.Sleep(thinks)
			}
		})
	}
	r := rand.New(rand.NewPCG(2, 2))
	free := make(chan []byte, 2*burst)
	for i := range 2 * burst {
		free <- l.memory.Bytes()[readers*readSize+i*writeSize:][:writeSize]
	}
	for next := time.Now(); next.Before(l.until); next = next.Add(every) {
		time.Sleep(time.Until(next))
		for range burst {
			data, off := <-free, r.Int64N(size/writeSize)*writeSize
			group.Go(func() {
				l.do(&backstore.Op{Kind: backstore.Write, Off: off, Data: data}, &l.writes, next)
				free <- data
			})
		}
	}
	group.Wait()
}

// do performs an operation that was due at a time.
func (l *load) do(op *backstore.Op, to *[]time.Duration, due time.Time) {
	done := make(chan struct{})
	op.Done = func(*backstore.Op) { close(done) }
	l.loop.Post(evloop.Func(func() {
		if l.lane.TryNow(op) || l.lane.Submit(op) {
			close(done)
		}
	}))
	<-done
	took := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, took)
	if op.Err != nil && l.failed == nil {
		l.failed = op.Err
		fmt.Fprintln(os.Stderr, "latency:", op.Err)
	}
}
