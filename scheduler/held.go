package scheduler

// The heap of held queues, by the time at which they are looked at again and
// then by slot. It has room for every queue once it has held them all.

func (d *Dispatcher) pushHeld(q *Queue) {
	q.heapIndex = len(d.held)
	d.held = append(d.held, q)
	d.up(q.heapIndex)
}

// unhold removes a queue from anywhere in the heap.
func (d *Dispatcher) unhold(q *Queue) {
	at, last := q.heapIndex, len(d.held)-1
	d.swapHeld(at, last)
	d.held[last] = nil
	d.held = d.held[:last]
	if at < last {
		d.down(at)
		d.up(at)
	}
}

func (d *Dispatcher) before(i, j int) bool {
	a, b := d.held[i], d.held[j]
	return a.until < b.until || a.until == b.until && a.slot < b.slot
}

func (d *Dispatcher) swapHeld(i, j int) {
	d.held[i], d.held[j] = d.held[j], d.held[i]
	d.held[i].heapIndex, d.held[j].heapIndex = i, j
}

func (d *Dispatcher) up(i int) {
	for i > 0 && d.before(i, (i-1)/2) {
		d.swapHeld(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (d *Dispatcher) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.held); child++ {
			if d.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swapHeld(i, least)
		i = least
	}
}
