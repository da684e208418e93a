package iser

import (
	"fmt"
	"math"
	"net/netip"
	"testing"

	"lunar/scheduler"
	"lunar/target/bottleneck"
)

const millisecond = 1_000_000

// reader is a connection of the test and its initiator, which has so many commands under way
// and sends the next a while after an answer. A nil lane: nothing governs it.
type reader struct {
	lane *lane
	come []int64 // when the commands that wait reach the server
	look int64   // when the lane is asked again
	got  int64   // bytes, since the first quarter
}

// narrow is a bottleneck that serves what is posted in order.
type narrow struct {
	rate   int64 // bytes per second
	size   int64 // of an operation
	posted []*reader
	free   int64 // when the first of them has left
}

// share has readers share it for a time in ns, and returns what each has got, in bytes
// per second.
func (q *narrow) share(readers []*reader, depth int, turn, time int64) (rates []float64, total float64) {
	for _, r := range readers {
		r.come = make([]int64, depth)
	}
	for now := int64(0); now < time; now += millisecond {
		for len(q.posted) > 0 && q.free <= now {
			r := q.posted[0]
			q.posted = q.posted[1:]
			q.start(now)
			if now >= time/4 {
				r.got += q.size
			}
			r.come = append(r.come, now+turn)
			if r.lane != nil {
				r.lane.ended(now)
				r.look = now
			}
		}
		for _, r := range readers {
			q.post(r, now)
			if r.lane != nil && now%int64(idleTime) == 0 {
				r.lane.tick()
			}
		}
	}
	for _, r := range readers {
		rate := float64(r.got) * 1e9 / float64(time-time/4)
		rates, total = append(rates, rate), total+rate
	}
	return rates, total
}

// start has the first operation leave.
func (q *narrow) start(now int64) { q.free = now + q.size*1e9/q.rate }

// post posts what a reader's lane admits, as the connection's pass does.
func (q *narrow) post(r *reader, now int64) {
	for len(r.come) > 0 && r.come[0] <= now {
		if r.lane != nil {
			if came := r.come[0] > now-millisecond; !came && now < r.look {
				return
			}
			if wait := r.lane.wait(now); wait > 0 {
				r.look = now + wait
				return
			}
			r.lane.posted(int(q.size), now)
		}
		r.come = r.come[1:]
		if q.posted = append(q.posted, r); len(q.posted) == 1 {
			q.start(now)
		}
	}
}

// TestLanesShare: three connections that always have commands get 3:2:1 of a slow link, and
// together what they would get without a governor, however few commands are under way. What
// waits for its rate has something to move, though for longer than idleTime nothing is posted.
func TestLanesShare(t *testing.T) {
	const told, size, delay = 47 << 10, 8 << 10, 1000 * millisecond
	for _, v := range []struct {
		rate  int64 // of the bottleneck, bytes per second
		depth int
		turn  int64
	}{
		{told, 1, 0}, {told, 2, 30 * millisecond}, {told, 4, 0}, {told, 4, 30 * millisecond}, {told, 16, 30 * millisecond}, {45 << 10, 1, 0},
	} {
		t.Run(fmt.Sprintf("%d KiB/s, depth %d, turn %d ms", v.rate>>10, v.depth, v.turn/millisecond), func(t *testing.T) {
			plain := narrow{rate: v.rate, size: size}
			_, all := plain.share([]*reader{{}, {}, {}}, v.depth, v.turn, 200e9)
			var links bottleneck.Links
			link := links.Of(netip.MustParseAddr("192.0.2.1"), "slow", bottleneck.Out, &scheduler.Network{Links: map[string]int64{"slow": told}})
			var readers []*reader
			for _, class := range []scheduler.Class{scheduler.High, scheduler.Medium, scheduler.Low} {
				r := &reader{lane: &lane{}}
				r.lane.open(link, class, delay, 0)
				readers = append(readers, r)
			}
			governed := narrow{rate: v.rate, size: size}
			rates, total := governed.share(readers, v.depth, v.turn, 200e9)
			t.Logf("%.3g %.3g %.3g, together %.3g of %.4g", rates[0]/total, rates[1]/total, rates[2]/total, total/all, all)
			for i, want := range []float64{1. / 2, 1. / 3, 1. / 6} {
				if got := rates[i] / total; math.Abs(got-want) > want/10 {
					t.Errorf("class %d has %.3f of what all have, expected %.3f", i, got, want)
				}
			}
			if total < 0.95*all {
				t.Errorf("all have %.4g, expected 0.95 of the %.4g without a governor", total, all)
			}
		})
	}
}
