package target

// hungry is a task without a session that waits for memory.
type hungry interface {
	resume()
	waiting() *bool // whether it is in a queue
	owns() bool     // a buffer that nobody else gets is free for it
}

// farQueue is a FIFO of them.
type farQueue struct{ tasks []hungry }

func (q *farQueue) empty() bool { return len(q.tasks) == 0 }

func (q *farQueue) add(t hungry) {
	if w := t.waiting(); !*w {
		*w = true
		q.tasks = append(q.tasks, t)
	}
}

func (q *farQueue) remove(t hungry) {
	w := t.waiting()
	if !*w {
		return
	}
	*w = false
	for i, o := range q.tasks {
		if o == t {
			q.tasks = append(q.tasks[:i], q.tasks[i+1:]...)
			return
		}
	}
}

// feed resumes those that wait, oldest first. Once the buffers that all share are exhausted, only those
// go on that have one of their own.
func (q *farQueue) feed(all *quotas) {
	waiting := q.tasks
	q.tasks = nil
	for _, t := range waiting {
		switch w := t.waiting(); {
		case !*w: // it was removed meanwhile
		case all.exhausted && !t.owns():
			q.tasks = append(q.tasks, t)
		default:
			*w = false
			t.resume()
		}
	}
}
