package tier

import (
	"slices"
	"sync"
	"time"

	"lunar/cache/internal/volumes"
)

// While a store is being written it is looked at in each busyWatch, else in each
// idleWatch. In each heartbeat all rows get the time: see evidence.Noted.
const (
	busyWatch = 50 * time.Millisecond
	idleWatch = 500 * time.Millisecond
	heartbeat = 250 * time.Millisecond
)

// witnesses look at the stores of a Cache's volumes until they are stopped. The heartbeat
// is apart, for a look may wait for a device.
type witnesses struct {
	alive []volumes.Row // that the heartbeat is for
	quit  chan struct{}
	once  sync.Once
	tasks sync.WaitGroup
}

// watchStores begins if there is a segment.
func (c *Cache) watchStores() {
	if c.config.Segment == nil {
		return
	}
	w := &c.witnesses
	w.quit = make(chan struct{})
	w.tasks.Go(func() { w.every(c.attest) })
	w.tasks.Go(func() { w.every(c.beat) })
}

// every does something, and again after the time that it returns.
func (w *witnesses) every(do func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-timer.C:
			timer.Reset(do())
		}
	}
}

// beat notes for all open volumes that the process is alive. It waits for nobody: who
// looks through the whole cache under c.mu takes longer than evidence allows.
func (c *Cache) beat() time.Duration {
	w := &c.witnesses
	if c.mu.TryLock() {
		w.alive = c.appendAlive(w.alive[:0])
		c.mu.Unlock()
	}
	now := time.Now().UnixNano()
	for _, r := range w.alive {
		r.Beat(now)
	}
	return heartbeat
}

// appendAlive appends the rows that the heartbeat is for. The caller holds mu.
func (c *Cache) appendAlive(rows []volumes.Row) []volumes.Row {
	for _, v := range c.mu.volumes {
		if v != nil && v.witness.Began() {
			rows = append(rows, v.row)
		}
	}
	for id := range c.mu.met {
		if r, ok := c.table.Find(id); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// attest looks at all open volumes.
func (c *Cache) attest() time.Duration {
	c.mu.Lock()
	open := slices.Clone(c.mu.volumes)
	c.mu.Unlock()
	pause := idleWatch
	for _, v := range open {
		if v != nil && v.witness.Look() {
			pause = busyWatch
		}
	}
	return pause
}

func (w *witnesses) stop() {
	if w.quit == nil {
		return
	}
	w.once.Do(func() { close(w.quit) })
	w.tasks.Wait()
}
