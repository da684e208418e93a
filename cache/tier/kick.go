package tier

import (
	"sync/atomic"

	"lunar/internal/evloop"
)

// kicks are how a volume's flusher is told to look, by any thread.
type kicks struct {
	loop   *evloop.Loop
	look   evloop.Task
	kicked atomic.Bool
	all    atomic.Bool // everything is to be written
	aged   atomic.Bool // the volume's age is another
}

// kick makes the flusher look whether it should write.
func (k *kicks) kick() {
	if !k.kicked.Load() && k.kicked.CompareAndSwap(false, true) {
		k.loop.Post(k.look)
	}
}

// kickAll makes the flusher write all that is dirty.
func (k *kicks) kickAll() {
	k.all.Store(true)
	k.kick()
}

// kickAged makes the flusher count a changed age from now on, and look. However many
// changes there are before it does, it has one task.
func (k *kicks) kickAged() {
	k.aged.Store(true)
	k.kick()
}
