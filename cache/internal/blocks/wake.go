package blocks

import "lunar/cache"

// Waiting is who waits in a partition: the Owner of a cache.Waiter.
type Waiting interface {
	// Resume has it ask again, on its own thread. Any thread may call it.
	Resume()
}

// Wake resumes a chain of waiters, each on its own event thread.
func Wake(chain *cache.Waiter) {
	for w := chain; w != nil; {
		next := w.Next()
		w.Owner.(Waiting).Resume()
		w = next
	}
}
