package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
)

const (
	canaryRate  = 500             // commands per second, which leave the processors to others
	canaryAlone = 5 * time.Second // that it works without changes
	// stall is what no command may wait while the configuration is changed. Threads of a
	// busy machine wait for a processor for some of that.
	stall = time.Second
)

// canary is an initiator beside the changes.
type canary struct{ conn *initiator.Conn }

// latencies are those of its commands.
type latencies struct {
	p50, p99, longest time.Duration
	slow              []span // that took longer than stall
}

// String is for the page.
func (l latencies) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("%v, %v, %v", round(l.p50), round(l.p99), round(l.longest))
}

// judge leaves out what waited while the machine stood still.
func (l *latencies) judge(s *stillness) {
	l.slow = s.without(l.slow)
	for _, one := range l.slow {
		l.longest = max(l.longest, one.took())
	}
}

func (t *trial) dialCanary(ctx context.Context) (*canary, error) {
	conn, err := initiator.Dial(ctx, t.portal, initiator.Options{Target: "iqn.2026-11.example:canary"})
	if err == nil {
		err = conn.Ready(0)
	}
	return &canary{conn}, err
}

// slice is how long its load is in one piece.
const slice = time.Second

// live works for so long, or with 0 until ctx ends.
func (c *canary) live(ctx context.Context, d time.Duration) (l latencies, err error) {
	seen := hdrhistogram.New(1, int64(time.Minute), 3)
	for end := time.Now().Add(d); err == nil && ctx.Err() == nil && (d == 0 || time.Now().Before(end)); {
		_, err = load.Run(context.WithoutCancel(ctx), []*initiator.Conn{c.conn}, load.Unit{BlockSize: 512, Blocks: 16 << 20 / 512}, load.Workload{
			Depth: 1, Rate: canaryRate, Sizes: []load.Share{{Bytes: 4096, Weight: 1}}, ReadPercent: 70, Random: true, Runtime: slice,
			Observe: func(_ int, started, ended int64) {
				took := ended - started
				_ = seen.RecordValue(min(took, int64(time.Minute))) // never beyond its range
				if time.Duration(took) > stall {
					l.slow = append(l.slow, span{started, ended})
				} else {
					l.longest = max(l.longest, time.Duration(took))
				}
			},
		})
	}
	if seen.TotalCount() == 0 {
		err = errors.Join(err, errors.New("the initiator had no answer"))
	}
	l.p50, l.p99 = time.Duration(seen.ValueAtQuantile(50)), time.Duration(seen.ValueAtQuantile(99))
	return l, err
}
