package cache

const (
	waitLists      = 64   // waiters are few: a short list for each group of slots
	aroundCounters = 1024 // a collision only sends one more request past the cache
)

// Waiter stands for one request that cannot go on now. It is embedded in the
// request and reused. From an Outcome of Wait until the partition hands it back
// it belongs to the partition.
type Waiter struct {
	// Owner is the caller's, to find the request again. Set once.
	Owner any
	// Err, set when the waiter is handed back, is the error with which the fill
	// ended that a reader waited for: it may fail with it rather than try again.
	Err error

	next      *Waiter
	mask      uint64
	slot      uint32
	exclusive bool
}

// Next returns the waiter after w in the chain that a method has returned. Ask
// before w goes to another thread.
func (w *Waiter) Next() *Waiter { return w.next }

// waitList is a queue.
type waitList struct{ head, tail *Waiter }

func (l *waitList) push(w *Waiter) {
	w.next = nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
}

// wait queues w until some of mask is let go of.
func (p *Partition) wait(slot uint32, mask uint64, exclusive bool, w *Waiter) {
	if w == nil {
		return
	}
	w.slot, w.mask, w.exclusive, w.Err = slot, mask, exclusive, nil
	p.waits[slot%waitLists].push(w)
	p.waiting++
	p.stats.Waits++
	if exclusive {
		p.blocks[slot].wanted |= mask
	}
}

// wake takes all out of the queue that wait for some of mask, in order of
// arrival, and adds them to chain. With a writer go the readers that stood
// behind it.
func (p *Partition) wake(slot uint32, mask uint64, err error, chain *Waiter) *Waiter {
	if p.waiting == 0 {
		return chain
	}
	list := &p.waits[slot%waitLists]
	var stay, out waitList
	var wanted, behind uint64
	for w := list.head; w != nil; {
		next := w.next
		switch {
		case w.slot != slot:
			stay.push(w)
		case w.mask&(mask|behind) == 0:
			stay.push(w)
			if w.exclusive {
				wanted |= w.mask
			}
		default:
			if w.exclusive {
				behind |= w.mask
			}
			if w.mask&mask != 0 {
				w.Err = err
			}
			p.waiting--
			out.push(w)
		}
		w = next
	}
	*list = stay
	p.blocks[slot].wanted = wanted
	return join(chain, out.head)
}

// join appends chain b to chain a.
func join(a, b *Waiter) *Waiter {
	if a == nil {
		return b
	}
	last := a
	for last.next != nil {
		last = last.next
	}
	last.next = b
	return a
}
