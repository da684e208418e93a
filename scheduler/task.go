package scheduler

import "lunar/scheduler/haechi"

// Task is one command as the scheduler sees it. It is embedded in the command
// and belongs to the scheduler from Enqueue (or Admit) to Done; it may be used
// again after that. The caller sets the exported fields before.
type Task struct {
	Cost  int64 // tokens, at least 1
	Bytes int64 // what byte rates count
	Owner any   // the command, for whoever gets the task from Next
	// Hit is set before Done by who served the command from a cache: then
	// its reservation or global token is given back.
	Hit bool

	grant   haechi.Grant
	charged uint8 // engines of the queue, by index, that gave a token

	queue      *Queue
	arrived    int64
	issued     int64
	next, prev *Task
}

// Grant says with which token the task was dispatched.
func (t *Task) Grant() haechi.Grant { return t.grant }

// Queue is the queue that the task was given to; nil before that.
func (t *Task) Queue() *Queue { return t.queue }

// Waited is the time from arrival to dispatch, ns.
func (t *Task) Waited() int64 { return t.issued - t.arrived }

// fifo is an intrusive list of tasks in order of arrival.
type fifo struct {
	head, tail *Task
	length     int
}

func (f *fifo) push(t *Task) {
	t.prev, t.next = f.tail, nil
	if f.tail == nil {
		f.head = t
	} else {
		f.tail.next = t
	}
	f.tail = t
	f.length++
}

// pop takes the first task out.
func (f *fifo) pop() *Task {
	t := f.head
	if f.head = t.next; f.head == nil {
		f.tail = nil
	} else {
		f.head.prev, t.next = nil, nil
	}
	f.length--
	return t
}

// remove takes a task out from anywhere.
func (f *fifo) remove(t *Task) {
	if t.prev == nil {
		f.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		f.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
	f.length--
}
