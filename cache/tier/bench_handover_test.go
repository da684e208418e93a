package tier

import (
	"fmt"
	"testing"
	"time"

	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// BenchmarkHandover is what a forward costs beside serving the request: it goes
// to the inbox of another event thread and comes back to that of the first one,
// alone or one of many. Both threads look for work before they sleep, as those
// of the server do.
func BenchmarkHandover(b *testing.B) {
	cpus := numa.Allowed()
	home, away := benchLoop(b, cpus[0], 0), benchLoop(b, cpus[len(cpus)-1], 0)
	for _, l := range []*evloop.Loop{home, away} {
		backstoretest.On(l, func() { l.SetBusyPoll(50 * time.Microsecond) })
	}
	for _, depth := range []int{1, 32} {
		b.Run(fmt.Sprintf("%d at a time", depth), func(b *testing.B) {
			f := handovers{home: home, away: away, left: b.N, running: depth, done: make(chan struct{})}
			b.ReportAllocs()
			b.ResetTimer()
			for range depth {
				home.Post(&handover{handovers: &f})
			}
			<-f.done
		})
	}
}

// handovers are many, counted on the thread of home.
type handovers struct {
	home, away    *evloop.Loop
	left, running int
	done          chan struct{}
}

// handover is one request's place between the threads.
type handover struct {
	*handovers
	there bool
}

// Run implements evloop.Task on both threads in turns.
func (f *handover) Run() {
	if f.there {
		f.there = false
		f.home.Post(f)
		return
	}
	if f.left > 0 {
		f.left--
		f.there = true
		f.away.Post(f)
		return
	}
	if f.running--; f.running == 0 {
		close(f.done)
	}
}
