package tyche

// arrivals is a queue of requests in groups that came together.
type arrivals struct {
	groups []group
	n      int // requests in all
}

type group struct {
	at int64
	n  int
}

func (q *arrivals) push(at int64, n int) {
	q.n += n
	q.groups = append(q.groups, group{at, n})
}

// oldest is when the first came; 0 if there is none.
func (q *arrivals) oldest() int64 {
	if q.n == 0 {
		return 0
	}
	return q.groups[0].at
}

// take removes the first n and returns the sum of their arrival times.
func (q *arrivals) take(n int) (since int64) {
	q.n -= n
	for n > 0 {
		g := &q.groups[0]
		part := min(n, g.n)
		since += int64(part) * g.at
		n -= part
		if g.n -= part; g.n == 0 {
			q.groups = q.groups[1:]
		}
	}
	return since
}
