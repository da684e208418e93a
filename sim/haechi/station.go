package haechi

import (
	"math/bits"

	"lunar/sim/kernel"
)

// window is the number of I/Os that a client keeps outstanding.
const window = 64

// wire is the time in ns from a client's NIC to the server and back; with both
// stations an unloaded round trip stays below the 60 µs of the model.
const wire = 8_000

// io is one I/O on its way; reserved says that a reservation token paid for it.
type io struct {
	submitted int64
	reserved  bool
}

// ring is a queue of at most window I/Os.
type ring struct {
	ios         [window]io
	first, size int
}

func (r *ring) push(x io) {
	if r.size == window {
		panic("haechi: more I/Os than the client's window")
	}
	r.ios[(r.first+r.size)%window] = x
	r.size++
}

func (r *ring) pop() io {
	x := r.ios[r.first]
	r.first = (r.first + 1) % window
	r.size--
	return x
}

// Arbitration says in which order the server serves the clients' I/Os.
type Arbitration uint8

// The arbitrations of A1.
const (
	Equal         Arbitration = iota // round robin among clients
	ReservedFirst                    // round robin among I/Os with a reservation token, then among the others
)

// String returns the value of the `arb` switch.
func (a Arbitration) String() string {
	return [...]string{Equal: "equal", ReservedFirst: "rprio"}[a]
}

// The queues of a client at the server: with Equal all I/Os use the first.
const (
	firstClass = iota
	secondClass
	classes
)

// server is the data node: one I/O at a time, round robin among the clients of
// the first class that has any.
type server struct {
	run     *run
	cost    int64 // ns per I/O
	busy    bool
	serving int // client whose I/O is served
	current io
	queued  [classes]uint64 // clients with queued I/Os, one bit each
	next    [classes]int    // client to be looked at first
	queues  [][classes]ring
}

// class returns the queue of an I/O.
func (s *server) class(x io) int {
	if s.run.setup.Arbitration == ReservedFirst && !x.reserved {
		return secondClass
	}
	return firstClass
}

// arrive queues an I/O of a client.
func (s *server) arrive(now int64, client int, x io) {
	c := s.class(x)
	s.queues[client][c].push(x)
	s.queued[c] |= 1 << client
	if !s.busy {
		s.serve(now)
	}
}

// serve starts the next I/O, if any waits.
func (s *server) serve(now int64) {
	s.busy = false
	for c := range s.queued {
		if s.queued[c] == 0 {
			continue
		}
		client := s.pick(c)
		q := &s.queues[client][c]
		s.current, s.serving, s.busy = q.pop(), client, true
		if q.size == 0 {
			s.queued[c] &^= 1 << client
		}
		s.run.kernel.At(now+s.cost, kernel.Completion, s, 0)
		return
	}
}

// pick returns the client whose turn it is in a class that has some.
func (s *server) pick(class int) int {
	from := s.queued[class] >> s.next[class] << s.next[class]
	if from == 0 {
		from = s.queued[class]
	}
	client := bits.TrailingZeros64(from)
	s.next[class] = client + 1
	return client
}

// Fire ends the I/O that is served.
func (s *server) Fire(now int64, _ int32) {
	client, done := s.serving, s.current
	s.serve(now)
	s.run.clients[client].complete(now, done)
}
