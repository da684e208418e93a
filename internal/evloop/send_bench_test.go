package evloop

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/tcppair"
)

// BenchmarkSend compares ways of sending over loopback TCP: what docs/reports/performance.md
// decides by. Two threads: the other one reads all that comes.
//
//	go test ./internal/evloop -run NONE -bench Send -cpu 2
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10} {
		for _, way := range []struct {
			name  string
			setup func(fd int) error
			flags int
			parts int  // system calls that a message is sent in
			quick bool // the reader acknowledges at once
		}{
			{"as served", SetNoDelay, 0, 1, false},
			{"zerocopy", zeroCopy, unix.MSG_ZEROCOPY, 1, false},
			{"nodelay in two", SetNoDelay, 0, 2, false},
			{"more in two", SetNoDelay, unix.MSG_MORE, 2, false},
			{"nagle in two", func(int) error { return nil }, 0, 2, false},
			{"quick acknowledgements", SetNoDelay, 0, 1, true},
			{"reno", congestion("reno"), 0, 1, false},
			{"cubic", congestion("cubic"), 0, 1, false},
			{"bbr", congestion("bbr"), 0, 1, false},
		} {
			b.Run(fmt.Sprintf("%d KiB/%s", size>>10, way.name), func(b *testing.B) {
				from, to := socketPair(b)
				if err := way.setup(from); err != nil {
					b.Skipf("the kernel refuses: %v", err)
				}
				b.SetBytes(int64(size))
				read := make(chan int)
				go tcppair.Drain(to, way.quick, read)
				data := make([]byte, size)
				spent := threadTime(b)
				for b.Loop() {
					for part := range way.parts {
						flags := way.flags
						if flags == unix.MSG_MORE && part == way.parts-1 {
							flags = 0
						}
						sendBlocking(b, from, data[part*size/way.parts:(part+1)*size/way.parts], flags)
					}
				}
				b.ReportMetric(float64(threadTime(b)-spent)/float64(b.N), "cpu-ns/op")
				_ = unix.Shutdown(from, unix.SHUT_WR) // the reader ends
				if n := <-read; n%size != 0 || n == 0 {
					b.Errorf("%d bytes have come, expected messages of %d", n, size)
				}
			})
		}
	}
}

func zeroCopy(fd int) error {
	return errors.Join(SetNoDelay(fd), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1))
}

func congestion(name string) func(fd int) error {
	return func(fd int) error {
		return errors.Join(SetNoDelay(fd), unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name))
	}
}

// socketPair returns the descriptors of a loopback connection, the first
// non-blocking.
func socketPair(b *testing.B) (from, to int) {
	from, to = tcppair.New(b)
	if err := SetNonblock(from); err != nil {
		b.Fatal(err)
	}
	return from, to
}

// threadTime is the CPU time of the benchmark's thread, in ns.
func threadTime(b *testing.B) int64 {
	runtime.LockOSThread()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}

// sendBlocking sends all, and takes the kernel's word that pages are free again.
func sendBlocking(b *testing.B, fd int, data []byte, flags int) {
	for len(data) > 0 {
		iov := []unix.Iovec{{Base: &data[0]}}
		iov[0].SetLen(len(data))
		n, errno := Sendmsg(fd, iov, flags)
		data = data[n:]
		if flags&unix.MSG_ZEROCOPY != 0 {
			takeNotes(fd)
		}
		switch errno {
		case 0:
		case unix.EAGAIN, unix.ENOBUFS: // ENOBUFS: too many pages are not free yet
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				b.Fatal(err)
			}
		default:
			b.Fatal(errno)
		}
	}
}

// takeNotes reads all notifications of MSG_ZEROCOPY.
func takeNotes(fd int) {
	var note [128]byte
	for {
		if _, _, _, _, err := unix.Recvmsg(fd, nil, note[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}
