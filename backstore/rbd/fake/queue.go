package fake

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// one is what an eventfd is written.
var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// queue implements rbd.Queue.
type queue struct {
	fd int
	mu struct {
		sync.Mutex
		ended  []rbd.Ended
		armed  bool
		closed bool
	}
}

func newQueue() (*queue, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &queue{fd: fd}, nil
}

// Start implements rbd.Queue.
func (q *queue) Start(i rbd.Image, io rbd.IO, token uint32) unix.Errno {
	img := i.(*image)
	c := img.client.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = append(c.jobs, job{q, img, io, token})
	c.more.Signal()
	return 0
}

// end is called by the cluster.
func (q *queue) end(e rbd.Ended) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		panic("fake: an operation ended in a queue that is closed")
	}
	q.mu.ended = append(q.mu.ended, e)
	if q.mu.armed {
		q.mu.armed = false
		if _, err := unix.Write(q.fd, one); err != nil {
			panic(err)
		}
	}
}

// Reap implements rbd.Queue.
func (q *queue) Reap(out []rbd.Ended) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.armed = false
	n := copy(out, q.mu.ended)
	q.mu.ended = append(q.mu.ended[:0], q.mu.ended[n:]...)
	return n
}

// Arm implements rbd.Queue.
func (q *queue) Arm() (came bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.armed = true
	return len(q.mu.ended) > 0
}

// FD implements rbd.Queue.
func (q *queue) FD() int { return q.fd }

// Close implements rbd.Queue.
func (q *queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed = true
	_ = unix.Close(q.fd) // nothing is lost with an eventfd
}
