package tier

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
)

const (
	missFile  = 512 << 20
	missDepth = 32
)

// BenchmarkMiss is random reads of 4 KiB of a file on a disk, past the page
// cache and 32 at a time: by goroutines that read, by a lane of the file on one
// event thread, and by that lane below a cache in which nearly all reads miss.
func BenchmarkMiss(b *testing.B) {
	path := diskFile(b)
	b.Run("32 goroutines with pread", func(b *testing.B) { preads(b, path) })
	for _, c := range []struct {
		name   string
		cached bool
	}{{"lane with io-uring", false}, {"cache miss", true}} {
		b.Run(c.name, func(b *testing.B) {
			store, err := backstore.OpenFile(backstore.FileConfig{Path: path, Direct: true})
			if err != nil {
				b.Fatal(err)
			}
			if c.cached {
				store, _ = setup{nodes: 1, block: benchBlock, blocks: 4, parts: benchPartitions}.wrap(b, store)
			}
			b.Cleanup(func() {
				if err := store.Close(); err != nil {
					b.Error(err)
				}
			})
			laneReads(b, store)
		})
	}
}

// diskFile makes a file without holes, which would be cheaper to read.
func diskFile(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tier")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	f, err := os.Create(filepath.Join(dir, "v"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	chunk := backstoretest.Pattern(1<<20, 1)
	for range missFile / len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		b.Fatal(err)
	}
	return f.Name()
}

// preads shares the reads out to goroutines, which the runtime gives threads.
func preads(b *testing.B, path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	reportCPU(b, func() {
		for i := range missDepth {
			all.Go(func() {
				data, w := backstoretest.Buffer(page), walk(i+1)
				for left.Add(-1) >= 0 {
					if n, err := unix.Pread(fd, data, w.next(missFile/page)); n != page || err != nil {
						b.Errorf("read %d bytes, %v", n, err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// laneReads keeps ops running on one event thread.
func laneReads(b *testing.B, store backstore.Store) {
	c := backstoretest.NewClient(b, store, benchLoop(b, -1, 2*missDepth))
	if c.Loop.Ring() == nil {
		b.Skip("the kernel refuses io_uring here")
	}
	r := missReader{b: b, lane: c.Lane, left: b.N, walk: 1, done: make(chan struct{})}
	reportCPU(b, func() {
		c.Loop.Post(evloop.Func(r.start))
		<-r.done
	})
}

// missReader reads at random until nothing is left to read; all but done belongs to
// the lane's thread.
type missReader struct {
	b             *testing.B
	lane          backstore.Lane
	ops           [missDepth]backstore.Op
	left, running int
	walk          walk
	done          chan struct{}
}

func (r *missReader) start() {
	for i := range r.ops {
		r.ops[i] = backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page), Done: r.ended}
		r.next(&r.ops[i])
	}
	r.finish()
}

// next keeps op reading until it has to be waited for.
func (r *missReader) next(op *backstore.Op) {
	for r.left > 0 && op.Err == nil {
		r.left--
		if op.Off = r.walk.next(missFile / page); r.lane.TryNow(op) {
			continue
		}
		if !r.lane.Submit(op) {
			r.running++
			return
		}
	}
	if op.Err != nil {
		r.b.Error(op.Err)
		r.left = 0
	}
}

func (r *missReader) ended(op *backstore.Op) {
	r.running--
	r.next(op)
	r.finish()
}

func (r *missReader) finish() {
	if r.left == 0 && r.running == 0 {
		close(r.done)
	}
}

// reportCPU measures f and the CPU time that the process takes for each of b.N
// operations meanwhile.
func reportCPU(b *testing.B, f func()) {
	from := cpuTime(b)
	b.ResetTimer()
	f()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-from).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
}

func cpuTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
