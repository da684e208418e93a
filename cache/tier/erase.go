package tier

import (
	"lunar/backstore"
	"lunar/internal/evloop"
)

// erase does Erase: nothing of what the cache has may come back under another key.
// What is dirty goes first, so that it is not written any more, what is filled
// meanwhile goes afterwards. Claims that wait for flushes and for memory that was lent
// are a control goroutine's; nobody writes meanwhile.
func (t *transfer) erase() {
	t.forget((*transfer).eraseBelow)
}

// forget drops all of the volume, and then goes on.
func (t *transfer) forget(then func(*transfer)) {
	l := t.lane
	go func() {
		l.blocks.ClaimTail(l.volume.config.LU, 0).Release(true)
		l.loop.Post(evloop.Func(func() { then(t) }))
	}()
}

func (t *transfer) eraseBelow() { t.below(backstore.Erase, nil, (*transfer).erasedBelow) }

func (t *transfer) erasedBelow() {
	if t.whole.Err != nil {
		t.fail(t.whole.Err)
	}
	t.forget((*transfer).finish)
}
