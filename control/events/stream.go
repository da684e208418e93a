package events

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"lunar/control"
)

// Capacity is how many events are kept.
const Capacity = 1024

// Stream is the newest events. It may be used by any number of goroutines.
type Stream struct {
	epoch string // of the process: numbers begin anew with it

	mu   sync.Mutex
	ring [Capacity]control.Event
	next uint64        // number of the next event; the first is 1
	more chan struct{} // closed by the next event
}

// New returns a stream without events, of a process that began at a time.
func New(began time.Time) *Stream {
	return &Stream{epoch: strconv.FormatInt(began.UnixMilli(), 36), next: 1, more: make(chan struct{})}
}

// Publish adds an event, whose ID is made. It does not wait for readers.
func (s *Stream) Publish(e control.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.ID = s.id(s.next)
	s.ring[s.next%Capacity] = e
	s.next++
	close(s.more)
	s.more = make(chan struct{})
}

func (s *Stream) id(n uint64) string { return s.epoch + "-" + strconv.FormatUint(n, 10) }

// Position is the number of the next event for who knows the one of an ID: the oldest, if
// that is unknown or another process's.
func (s *Stream) Position(id string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch != s.epoch || n >= s.next {
		return s.oldest()
	}
	return n + 1
}

func (s *Stream) oldest() uint64 {
	if s.next <= Capacity {
		return 1
	}
	return s.next - Capacity
}

// From returns the events from a number on, with one in front that says how many of them
// are gone, the number of the next one, and what is closed when there is one.
func (s *Stream) From(n uint64) (found []control.Event, next uint64, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.oldest(); n < first {
		found = append(found, control.Event{ID: s.id(first - 1), Time: time.Now(), Kind: control.Lost, Text: fmt.Sprintf("%d events were not taken in time, and are gone", first-n),
			Fields: map[string]string{"count": strconv.FormatUint(first-n, 10)}})
		n = first
	}
	for ; n < s.next; n++ {
		found = append(found, s.ring[n%Capacity])
	}
	return found, n, s.more
}

// Last returns the last events, at most n, the newest last.
func (s *Stream) Last(n int) []control.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []control.Event{}
	for i := max(s.oldest(), s.next-min(s.next, uint64(n))); i < s.next; i++ {
		found = append(found, s.ring[i%Capacity])
	}
	return found
}
