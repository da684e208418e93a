package tier

import (
	"sync"
	"time"
)

// watching looks from time to time whether the next process would find the segment.
type watching struct {
	stopping chan struct{}
	ended    sync.WaitGroup
}

// watchEvery is how long a segment that was removed may go unnoticed.
const watchEvery = 5 * time.Second

func (c *Cache) watch() {
	if c.config.Segment == nil {
		return
	}
	c.watching.stopping = make(chan struct{})
	c.watching.ended.Go(func() {
		ticks := time.NewTicker(watchEvery)
		defer ticks.Stop()
		for {
			select {
			case <-c.watching.stopping:
				return
			case <-ticks.C:
				c.look()
				c.blocks.Scrub()
			}
		}
	})
}

func (c *Cache) unwatch() {
	if c.watching.stopping != nil {
		close(c.watching.stopping)
		c.watching.ended.Wait()
		c.watching.stopping = nil
	}
}

// look notes, once, that the segment is gone. What is in it is served and written as
// before: only the next process will not have it.
func (c *Cache) look() {
	if c.config.Segment.Found() || c.lost.Swap(true) {
		return
	}
	c.log.Error("the cache segment was removed, renamed or replaced while it is in use: data that write: back has acknowledged are still written, but are lost if tgtd is killed or crashes. Stop tgtd in order and start it again, or apply write: through until then",
		"path", c.config.Segment.Path(), "unwritten-bytes", c.Stats().DirtyBytes)
}
