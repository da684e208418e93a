package scheduler

// The heap of queues that wait for a time, by that and then by slot. It has room
// for every queue once it has held them all.

func (d *Dispatcher) pushTimed(q *Queue) {
	q.heapIndex = len(d.timed)
	d.timed = append(d.timed, q)
	d.up(q.heapIndex)
}

// removeTimed removes a queue from anywhere in the heap.
func (d *Dispatcher) removeTimed(q *Queue) {
	at, last := q.heapIndex, len(d.timed)-1
	d.swapTimed(at, last)
	d.timed[last] = nil
	d.timed = d.timed[:last]
	if at < last {
		d.down(at)
		d.up(at)
	}
}

func (d *Dispatcher) before(i, j int) bool {
	a, b := d.timed[i], d.timed[j]
	return a.until < b.until || a.until == b.until && a.slot < b.slot
}

func (d *Dispatcher) swapTimed(i, j int) {
	d.timed[i], d.timed[j] = d.timed[j], d.timed[i]
	d.timed[i].heapIndex, d.timed[j].heapIndex = i, j
}

func (d *Dispatcher) up(i int) {
	for i > 0 && d.before(i, (i-1)/2) {
		d.swapTimed(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (d *Dispatcher) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.timed); child++ {
			if d.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swapTimed(i, least)
		i = least
	}
}
