// Package quiesce waits for what is under way on event threads: each thread
// counts its operations in a Counter of its own, without locks, and a control
// goroutine asks all Counters whether those that it found there have ended. New
// ones may begin meanwhile.
package quiesce

import (
	"sync"

	"lunar/internal/evloop"
)

// Counter counts the operations of one event thread. All its methods run there.
// The zero Counter is ready.
type Counter struct {
	era    Era
	inside [2]int
	passed func() // hears that the era before has ended
}

// Era is when an operation began.
type Era uint8

// Enter counts an operation. The caller keeps the result for Exit.
func (c *Counter) Enter() Era {
	c.inside[c.era]++
	return c.era
}

// Exit counts the end of an operation.
func (c *Counter) Exit(e Era) {
	if c.inside[e]--; c.inside[e] == 0 && e != c.era {
		c.tell()
	}
}

// turn begins an era. passed hears when all operations of the one before have
// ended.
func (c *Counter) turn(passed func()) {
	old := c.era
	c.era, c.passed = 1-old, passed
	if c.inside[old] == 0 {
		c.tell()
	}
}

func (c *Counter) tell() {
	if passed := c.passed; passed != nil {
		c.passed = nil
		passed()
	}
}

// Counters are those of one store. The zero value is ready.
type Counters struct {
	turning sync.Mutex // one Wait at a time: a Counter knows two eras
	mu      struct {
		sync.Mutex
		loops   map[*Counter]*evloop.Loop
		awaited map[*Counter]chan struct{}
	}
}

// Add makes c, which counts on l's thread, one of the Counters.
func (s *Counters) Add(c *Counter, l *evloop.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.loops == nil {
		s.mu.loops, s.mu.awaited = make(map[*Counter]*evloop.Loop), make(map[*Counter]chan struct{})
	}
	s.mu.loops[c] = l
}

// Remove ends what Add began; nothing is inside.
func (s *Counters) Remove(c *Counter) {
	s.passed(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.loops, c)
}

// Wait returns when all operations have ended that had entered any of the Counters
// before. It must not be called on an event thread.
func (s *Counters) Wait() {
	s.turning.Lock()
	defer s.turning.Unlock()
	for _, passed := range s.turn() {
		<-passed
	}
}

func (s *Counters) turn() (all []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, loop := range s.mu.loops {
		passed := make(chan struct{})
		s.mu.awaited[c] = passed
		all = append(all, passed)
		loop.Post(evloop.Func(func() { c.turn(func() { s.passed(c) }) }))
	}
	return all
}

// passed notes that nobody needs to wait for c any more.
func (s *Counters) passed(c *Counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := s.mu.awaited[c]; passed != nil {
		close(passed)
		delete(s.mu.awaited, c)
	}
}
