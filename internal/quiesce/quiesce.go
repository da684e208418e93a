// Package quiesce waits for what is under way on event threads: each thread
// counts its operations in a Gate of its own, without locks, and a control
// goroutine asks all Gates whether those that it found there have ended. New
// ones may begin meanwhile.
package quiesce

import (
	"sync"

	"lunar/internal/evloop"
)

// Gate counts the operations of one event thread. All its methods run there.
// The zero Gate is ready.
type Gate struct {
	era    Era
	inside [2]int
	passed func() // hears that the era before has ended
}

// Era is when an operation began.
type Era uint8

// Enter counts an operation, which keeps the result for Leave.
func (g *Gate) Enter() Era {
	g.inside[g.era]++
	return g.era
}

// Leave counts the end of an operation.
func (g *Gate) Leave(e Era) {
	if g.inside[e]--; g.inside[e] == 0 && e != g.era {
		g.tell()
	}
}

// turn begins an era. passed hears when all operations of the one before have
// ended.
func (g *Gate) turn(passed func()) {
	old := g.era
	g.era, g.passed = 1-old, passed
	if g.inside[old] == 0 {
		g.tell()
	}
}

func (g *Gate) tell() {
	if passed := g.passed; passed != nil {
		g.passed = nil
		passed()
	}
}

// Gates are those of one store. The zero value is ready.
type Gates struct {
	turning sync.Mutex // one Wait at a time: a Gate knows two eras
	mu      struct {
		sync.Mutex
		loops   map[*Gate]*evloop.Loop
		awaited map[*Gate]chan struct{}
	}
}

// Add makes g, which counts on l's thread, one of the Gates.
func (s *Gates) Add(g *Gate, l *evloop.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.loops == nil {
		s.mu.loops, s.mu.awaited = make(map[*Gate]*evloop.Loop), make(map[*Gate]chan struct{})
	}
	s.mu.loops[g] = l
}

// Remove ends what Add began; nothing is inside.
func (s *Gates) Remove(g *Gate) {
	s.passed(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.loops, g)
}

// Wait returns when all operations have ended that had entered any of the Gates
// before. It must not be called on an event thread.
func (s *Gates) Wait() {
	s.turning.Lock()
	defer s.turning.Unlock()
	for _, passed := range s.turn() {
		<-passed
	}
}

func (s *Gates) turn() (all []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g, loop := range s.mu.loops {
		passed := make(chan struct{})
		s.mu.awaited[g] = passed
		all = append(all, passed)
		loop.Post(evloop.Func(func() { g.turn(func() { s.passed(g) }) }))
	}
	return all
}

// passed notes that nobody needs to wait for g any more.
func (s *Gates) passed(g *Gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := s.mu.awaited[g]; passed != nil {
		close(passed)
		delete(s.mu.awaited, g)
	}
}
