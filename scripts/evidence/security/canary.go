package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
)

// The canary's load: small reads and writes at a rate that the server serves easily, so
// that what is missing was taken by somebody.
const (
	canaryRate   = 1500 // commands per second
	canaryDepth  = 8
	canaryBlocks = 16 << 20 / 512 // of its volume; what lies behind is for who tries to steal
)

// canary is an initiator with a volume of its own on the server that is attacked. Each
// block that it reads is compared with what it wrote.
type canary struct {
	scene  *scene
	timed  bool // its thread is a real-time one
	conn   *initiator.Conn
	losses []string // how its sessions ended
	wrong  []string // miscompares
	ended  int      // commands that ended otherwise than well
	bad    string   // some of them
	rounds uint64
}

// slice is a while of the canary's life.
type slice struct {
	P99, Longest time.Duration
	Rate         float64 // commands per second
}

// dial logs in, again and again until it succeeds.
func (c *canary) dial(ctx context.Context) error {
	for {
		o := as(canaryName, canaryTarget, &canaryCHAP, 0)
		o.ISID = canaryISID
		soon, cancel := context.WithTimeout(ctx, answerTime)
		conn, err := loginTo(soon, c.scene.Portal, o)
		cancel()
		if err == nil {
			c.conn = conn
			return nil
		}
		c.losses = append(c.losses, "login: "+err.Error())
		if !pause(ctx, time.Second) || len(c.losses) > 100 {
			return fmt.Errorf("the canary cannot log in: %w", err)
		}
	}
}

// loginTo is a login whose connection outlives ctx, to a unit that is ready.
func loginTo(ctx context.Context, portal string, o initiator.Options) (*initiator.Conn, error) {
	conn, err := initiator.Dial(ctx, portal, o)
	if err != nil {
		return nil, err
	}
	conn.Timeout = answerTime
	if err := conn.Ready(0); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// live works for so long and returns how well it could. When it is over it says so to
// over, if not nil; what the canary waits for then it goes on waiting for.
func (c *canary) live(ctx context.Context, d time.Duration, over func()) (slice, error) {
	if c.conn == nil {
		if err := c.dial(ctx); err != nil {
			return slice{}, err
		}
	}
	if over != nil {
		defer time.AfterFunc(d, over).Stop()
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it stops the world, and a real-time thread waits for the others of its CPU then
	latency, longest := hdrhistogram.New(1, int64(time.Minute), 3), int64(0)
	_, cpu := cpus()
	c.rounds++
	r, err := load.Run(ctx, []*initiator.Conn{c.conn}, load.Unit{BlockSize: 512, Blocks: canaryBlocks}, load.Workload{
		Depth: canaryDepth, Rate: canaryRate, Sizes: []load.Share{{Bytes: 4096, Weight: 1}}, ReadPercent: 70, Random: true,
		Seed: c.rounds, Verify: true, Runtime: d, CPU: cpu, RealTime: c.timed,
		Observe: func(_ int, started, ended int64) {
			_ = latency.RecordValue(min(ended-started, int64(time.Minute))) // never beyond its range
			longest = max(longest, ended-started)
		},
	})
	s := slice{P99: time.Duration(latency.ValueAtQuantile(99)), Longest: time.Duration(longest)}
	if err != nil { // the session is gone, or a command has had no answer for long after the attack
		c.losses = append(c.losses, err.Error())
		c.conn.Close()
		c.conn = nil
		s.P99, s.Longest = max(s.P99, d), max(s.Longest, d)
		return s, nil
	}
	c.judge(r)
	s.Rate = r.IOPS
	return s, nil
}

// judge notes what must not have happened.
func (c *canary) judge(r *load.Result) {
	if v := r.Verification; v.Miscompares > 0 {
		c.wrong = append(c.wrong, v.First)
	}
	for status, n := range r.Statuses {
		c.ended += int(n)
		c.bad = fmt.Sprintf("%d commands ended with status %s; the first: %+v", n, status, *r.FirstFailure)
	}
}

// leave ends the session.
func (c *canary) leave() {
	if c.conn != nil {
		if _, err := c.conn.Logout(0); err != nil {
			c.losses = append(c.losses, "logout: "+err.Error())
		}
		c.conn.Close()
	}
}
