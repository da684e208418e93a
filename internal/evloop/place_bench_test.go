package evloop

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// placeArena is the memory that stands for a cache: larger than the CPU's.
const placeArena = 512 << 20

// BenchmarkPlace is receiving 256 KiB over loopback TCP to a block of a large memory:
// directly, or through a buffer that is used again and again.
//
//	go test ./internal/evloop -run NONE -bench 'Place|Digest' -cpu 2
func BenchmarkPlace(b *testing.B) {
	const size = 256 << 10
	arena, err := unix.Mmap(-1, 0, placeArena, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Munmap(arena)
	_ = unix.Madvise(arena, unix.MADV_HUGEPAGE)
	clear(arena)
	for _, direct := range []bool{true, false} {
		name := map[bool]string{true: "directly", false: "through a buffer"}[direct]
		b.Run(name, func(b *testing.B) {
			from, to := socketPair(b)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				feed(from, make([]byte, size))
			}()
			buffer := make([]byte, size)
			b.SetBytes(size)
			spent := threadTime(b)
			for b.Loop() {
				block := arena[rand.IntN(placeArena/size)*size:][:size]
				into := buffer
				if direct {
					into = block
				}
				for got := 0; got < size; {
					n, errno := Read(to, into[got:])
					if errno != 0 || n == 0 {
						b.Fatalf("%d bytes, error %v", n, errno)
					}
					got += n
				}
				if !direct {
					copy(block, buffer)
				}
			}
			b.ReportMetric(float64(threadTime(b)-spent)/float64(b.N), "cpu-ns/op")
			_ = unix.Shutdown(to, unix.SHUT_RDWR) // the feeder ends
			<-ended
		})
	}
}

// feed sends data again and again until the peer goes.
func feed(fd int, data []byte) {
	for rest := data; ; {
		iov := []unix.Iovec{{Base: &rest[0]}}
		iov[0].SetLen(len(rest))
		n, errno := Sendmsg(fd, iov, 0)
		switch errno {
		case 0:
			if rest = rest[n:]; len(rest) == 0 {
				rest = data
			}
		case unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 100)
		default:
			return
		}
	}
}

// BenchmarkDigest is CRC32C where the data lie, or by workers that hand the result
// back, eight at a time as a deep queue has them. cpu-ns/op is the event thread's own
// time. A pool helps only where that, plus what else the thread does, is what limits.
func BenchmarkDigest(b *testing.B) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, size := range []int{4 << 10, 64 << 10, 256 << 10} {
		data := make([]byte, size)
		b.Run(fmt.Sprintf("%d KiB/in place", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			spent := threadTime(b)
			for b.Loop() {
				crc32.Update(0, table, data)
			}
			b.ReportMetric(float64(threadTime(b)-spent)/float64(b.N), "cpu-ns/op")
		})
		b.Run(fmt.Sprintf("%d KiB/by workers", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			workers := NewWorkers(2)
			defer workers.Close()
			l, err := New(Config{Name: "digest", CPU: -1, Node: -1, Workers: workers})
			if err != nil {
				b.Fatal(err)
			}
			pool := digestPool{loop: l, table: table, data: data, left: b.N}
			for range digestsAtOnce {
				job := &digestJob{pool: &pool}
				l.Post(Func(job.next))
			}
			ended := make(chan int64)
			go func() {
				spent := threadTime(b)
				l.Run()
				ended <- threadTime(b) - spent
			}()
			b.ReportMetric(float64(<-ended)/float64(b.N), "cpu-ns/op")
		})
	}
}

// digestsAtOnce is how deep the queue is.
const digestsAtOnce = 8

// digestPool is what the jobs of a run share, on the loop's thread.
type digestPool struct {
	loop           *Loop
	table          *crc32.Table
	data           []byte
	left, underWay int
}

type digestJob struct{ pool *digestPool }

// Do implements Job.
func (j *digestJob) Do() { crc32.Update(0, j.pool.table, j.pool.data) }

// Run implements Job.
func (j *digestJob) Run() {
	j.pool.underWay--
	j.next()
}

func (j *digestJob) next() {
	p := j.pool
	switch {
	case p.left > 0:
		p.left--
		p.underWay++
		p.loop.Workers().Submit(p.loop, j)
	case p.underWay == 0:
		p.loop.Stop()
	}
}
