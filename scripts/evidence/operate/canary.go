package main

import (
	"context"
	"fmt"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/canary"
)

const (
	canaryTarget = "iqn.2026-11.example:canary"
	canaryAlone  = 5 * time.Second // that it works without changes
	// stalled is what no command may wait while the configuration is changed. Threads of a
	// busy machine wait for a processor for some of that.
	stalled = time.Second
)

// newCanary is an initiator beside changes, which leaves the processors to others.
func newCanary(portal string, realTime bool) *canary.Canary {
	return &canary.Canary{Rate: 500, Depth: 1, RealTime: realTime, Slow: stalled, Login: func(ctx context.Context) (*initiator.Conn, error) {
		conn, err := initiator.Dial(ctx, portal, initiator.Options{Target: canaryTarget})
		if err == nil {
			err = conn.Ready(0)
		}
		return conn, err
	}}
}

// latencies are median, 99th percentile and longest, for the page.
func latencies(l canary.Slice) string {
	return fmt.Sprintf("%v, %v, %v", tens(l.P50), tens(l.P99), tens(l.Longest))
}

func tens(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// besides leaves out what waited while the machine stood still.
func (s *stillness) besides(l canary.Slice) canary.Slice {
	l.Slow = s.without(l.Slow)
	for _, one := range l.Slow {
		l.Longest = max(l.Longest, one.Took())
	}
	return l
}

// harm is what must not happen to a canary.
func harm(c *canary.Canary) int { return c.Ended + len(c.Wrong) + len(c.Losses) }
