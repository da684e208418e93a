package main

import (
	"context"
	"fmt"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/notes"
)

const phase = 3 * time.Second

// mostSlower is how much the 99th percentile of an initiator with a promise may grow by
// pages that are open.
const mostSlower = 1.25

// pages measures an initiator with a promise, again and again alone and with pages open. A
// browser would work beside it on the same machine, which is not the server's doing, and its
// pages ask only while they are seen: so what asks are watchers with the pace of pages.
func pages(ctx context.Context, o options) (facts, error) {
	s, err := serve(o)
	if err != nil {
		return nil, err
	}
	defer s.end()
	if err := s.load(ctx, o.Tgtd, "iqn.2026-11.example:web1", 2, "--rw", "randread", "--bs", "8k", "--rate", "300"); err != nil {
		return nil, err
	}
	c := &canary.Canary{Rate: 1000, Depth: 4, Login: func(ctx context.Context) (*initiator.Conn, error) {
		conn, err := initiator.Dial(ctx, s.portal, initiator.Options{Target: target, Initiator: "iqn.2026-11.example:db1"})
		if err == nil {
			err = conn.Ready(0)
		}
		return conn, err
	}}
	if err := c.Dial(ctx); err != nil {
		return nil, err
	}
	defer c.Leave()
	var p canary.Phases
	answers := 0
	for range o.Rounds {
		alone, err := c.Live(ctx, phase, nil)
		if err != nil {
			return nil, err
		}
		watching, stop := context.WithCancel(ctx)
		done := make(chan int)
		for range o.Pages {
			go func() { done <- s.watch(watching) }()
		}
		with, err := c.Live(ctx, phase, nil)
		stop()
		for range o.Pages {
			answers += <-done
		}
		if err != nil {
			return nil, err
		}
		p.Add(alone, with)
	}
	p99 := func(l canary.Slice) float64 { return float64(l.P99) }
	ratio := p.Ratio(p99)
	return facts{
		notes.Found("how it is done", fmt.Sprintf("an initiator with a promise reads and writes 4 KiB, 1,000 a second; %d times %v alone and %v with %d watchers, each of which asks as a page does, a second after its last answer", o.Rounds, phase, phase, o.Pages), true),
		notes.Found("answers to watchers", fmt.Sprint(answers), answers >= o.Rounds*o.Pages),
		notes.Found("99th percentile with watchers to that alone, median of rounds", fmt.Sprintf("%.2f (%v to %v)", ratio, time.Duration(canary.Median(p.With, p99)).Round(time.Microsecond), time.Duration(canary.Median(p.Alone, p99)).Round(time.Microsecond)), ratio <= mostSlower),
		notes.Found("commands that failed, blocks that were wrong, sessions that were lost", fmt.Sprint(c.Ended+len(c.Wrong)+len(c.Losses)), c.Ended+len(c.Wrong)+len(c.Losses) == 0),
	}, nil
}

// watch asks as a page does until ctx ends, and returns how often it had an answer.
func (s *served) watch(ctx context.Context) (answers int) {
	for {
		if _, err := s.api.Overview(ctx); err == nil {
			answers++
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return answers
		}
	}
}
