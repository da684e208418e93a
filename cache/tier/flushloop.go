package tier

import (
	"sync"

	"lunar/internal/evloop"
)

// flushLoop is the event thread of flushers.
type flushLoop struct {
	mu struct {
		sync.Mutex
		loop *evloop.Loop
	}
	workers *evloop.Workers
}

// get returns the loop; it is made when it is first needed.
func (f *flushLoop) get(c *Config) (*evloop.Loop, error) {
	if c.Flusher != nil {
		return c.Flusher, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.loop != nil {
		return f.mu.loop, nil
	}
	workers := evloop.NewWorkers(flushWorkers)
	loop, err := evloop.New(evloop.Config{Name: "cache-flush", CPU: -1, Node: -1, RingEntries: flushRing, Workers: workers, Logger: c.Logger})
	if err != nil {
		workers.Close()
		return nil, err
	}
	go loop.Run()
	f.mu.loop, f.workers = loop, workers
	return loop, nil
}

const (
	flushWorkers = 4  // for stores that block
	flushRing    = 64 // submissions
)

// stop ends the loop that get has made.
func (f *flushLoop) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.loop != nil {
		f.workers.Close()
		f.mu.loop.Stop()
		f.mu.loop = nil
	}
}
