package target

// hungry is a task without a session that waits for memory.
type hungry interface {
	resume()
	waiting() *bool // whether it is in a queue
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

// feed resumes those that wait, oldest first, until one has to wait again.
func (q *farQueue) feed() {
	for range len(q.tasks) {
		t := q.tasks[0]
		q.remove(t)
		t.resume()
		if *t.waiting() { // first in line still
			copy(q.tasks[1:], q.tasks[:len(q.tasks)-1])
			q.tasks[0] = t
			return
		}
	}
}
