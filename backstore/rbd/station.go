package rbd

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// lookMost is how many ends a pass deals with.
const lookMost = 64

// station is an event thread's way to all images. All its methods run on that thread.
type station struct {
	loop    *evloop.Loop
	queue   Queue
	lanes   int // that use it
	running int
	slots   []slot   // of operations under way, by token
	free    []uint32 // tokens
	ended   [lookMost]Ended
}

// slot is an operation under way.
type slot struct {
	op   *backstore.Op
	by   settler
	era  quiesce.Era
	done int64 // bytes of op that were zeroed before
	n    int64 // bytes that are under way
}

// settler goes on with an operation of its own when a part of it has ended.
type settler interface{ settle(s slot, result int64) }

// newStation is called on the thread of the loop. It owns the queue, also on failure.
func newStation(loop *evloop.Loop, queue Queue) (*station, error) {
	s := &station{loop: loop, queue: queue}
	if err := loop.Register(queue.FD(), unix.EPOLLIN|unix.EPOLLET, s); err != nil {
		queue.Close()
		return nil, fmt.Errorf("rbd: %w", err)
	}
	loop.AddSource(s)
	return s, nil
}

func (s *station) close() {
	s.loop.RemoveSource(s)
	_ = s.loop.Unregister(s.queue.FD()) // it is open
	s.queue.Close()
}

// Ready implements evloop.Poller: the pass that hears of it looks.
func (s *station) Ready(uint32) {}

// Look implements evloop.Source.
func (s *station) Look() (work int) {
	if s.running == 0 {
		return 0
	}
	n := s.queue.Reap(s.ended[:])
	for i := range s.ended[:n] {
		e := s.ended[i]
		sl := s.slots[e.Token]
		s.slots[e.Token] = slot{}
		s.free = append(s.free, e.Token)
		s.running--
		sl.by.settle(sl, e.Result)
		s.loop.Yield()
	}
	return n
}

// Sleep implements evloop.Source.
func (s *station) Sleep() (came bool) { return s.running > 0 && s.queue.Arm() }

// start begins what a slot has to do next.
func (s *station) start(image Image, sl *slot, io IO) unix.Errno {
	token, fresh := uint32(len(s.slots)), len(s.free) == 0
	if !fresh {
		token = s.free[len(s.free)-1]
	}
	if errno := s.queue.Start(image, io, token); errno != 0 {
		return errno
	}
	if fresh {
		s.slots = append(s.slots, *sl)
	} else {
		s.free, s.slots[token] = s.free[:len(s.free)-1], *sl
	}
	s.running++
	return 0
}
