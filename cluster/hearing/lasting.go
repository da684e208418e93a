package hearing

import (
	"maps"
	"time"
)

// Lasting keeps what was known of nodes for some time after it was known last: who comes is there at
// once, and who goes only when it stays away. So an outage that is over soon changes nothing of what
// hosts are told. It belongs to one goroutine.
type Lasting[T any] struct {
	For  time.Duration
	last map[string]lasting[T]
}

type lasting[T any] struct {
	value T
	until time.Time
}

// See tells what is known of nodes now, and returns that with what was known a moment ago of others.
func (l *Lasting[T]) See(now time.Time, known map[string]T) map[string]T {
	if l.last == nil {
		l.last = map[string]lasting[T]{}
	}
	for node, value := range known {
		l.last[node] = lasting[T]{value, now.Add(l.For)}
	}
	maps.DeleteFunc(l.last, func(node string, was lasting[T]) bool {
		_, is := known[node]
		return !is && !now.Before(was.until)
	})
	all := make(map[string]T, len(l.last))
	for node, was := range l.last {
		all[node] = was.value
	}
	return all
}
