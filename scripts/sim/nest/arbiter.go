package nest

// Tag is the class of a command: two bits, which SCSI carries as a configured GROUP NUMBER
// and IP as a DSCP.
type Tag uint8

// The tags.
const (
	Urgent Tag = iota
	High
	Medium
	Low
	Tags // how many there are
)

// String is the tag's name.
func (t Tag) String() string { return [...]string{"Urgent", "High", "Medium", "Low"}[t] }

// weights are how many commands of a class an NVMe controller takes in a round.
var weights = [Tags]int{High: 3, Medium: 2, Low: 1}

// tagged is what an arbiter orders.
type tagged interface{ tag() Tag }

// arbiter is NVMe's weighted round robin with an urgent class: urgent commands first, then
// by rounds, in order of arrival inside a class.
type arbiter[T tagged] struct {
	fifo   bool // no QoS: all in order of arrival
	queues [Tags]queue[T]
	class  Tag // whose turn it is
	left   int // commands of it in this round
	n      int
}

func (a *arbiter[T]) len() int { return a.n }

func (a *arbiter[T]) push(c T) {
	a.n++
	if a.fifo {
		a.queues[Urgent].push(c)
		return
	}
	a.queues[c.tag()].push(c)
}

// pop takes the next one; there has to be one.
func (a *arbiter[T]) pop() T {
	a.n--
	if a.queues[Urgent].len() > 0 {
		return a.queues[Urgent].pop()
	}
	for a.left == 0 || a.queues[a.class].len() == 0 {
		a.turn()
	}
	a.left--
	return a.queues[a.class].pop()
}

func (a *arbiter[T]) turn() {
	if a.class++; a.class >= Tags {
		a.class = High
	}
	a.left = weights[a.class]
}

// queue is a queue that reuses its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(c T) {
	if q.head > 64 && 2*q.head > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, c)
}

func (q *queue[T]) pop() T {
	c := q.items[q.head]
	var zero T
	q.items[q.head] = zero
	q.head++
	return c
}
