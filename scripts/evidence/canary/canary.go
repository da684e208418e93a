// Package canary is an initiator beside what is tried on a server: small reads and writes
// at a rate that the server serves easily, so that what is missing was taken by somebody.
package canary

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

const (
	Blocks = 16 << 20 / 512 // of LUN 0 that a canary uses; what lies behind is nothing to it

	mostLogins = 100 // that it tries
	forever    = 24 * time.Hour
)

// Canary reads and writes 4 KiB, and compares each block that it reads with what it wrote.
// What must not happen it counts and goes on.
type Canary struct {
	// Login opens a session to a LUN 0 that is ready. The connection outlives the context.
	Login    func(context.Context) (*initiator.Conn, error)
	Rate     float64 // commands per second
	Depth    int
	RealTime bool          // its thread is a real-time one
	Slow     time.Duration // commands that take longer are told one by one; 0: none

	Losses []string // how its sessions ended, and its logins
	Wrong  []string // miscompares
	Ended  int      // commands that ended otherwise than well
	Bad    string   // some of them

	conn   *initiator.Conn
	rounds uint64
}

// Span is from one time to another, on evloop.Monotonic's clock.
type Span struct{ From, To int64 }

// Took is how long it is.
func (s Span) Took() time.Duration { return time.Duration(s.To - s.From) }

// Slice is a while of a canary's life.
type Slice struct {
	P50, P99 time.Duration
	Longest  time.Duration // but for those of Slow
	Rate     float64       // commands per second
	Slow     []Span
}

// Dial logs in, again and again until it succeeds.
func (c *Canary) Dial(ctx context.Context) error {
	for {
		conn, err := c.Login(ctx)
		if err == nil {
			c.conn = conn
			return nil
		}
		c.Losses = append(c.Losses, "login: "+err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			if len(c.Losses) <= mostLogins {
				continue
			}
		}
		return fmt.Errorf("the canary cannot log in: %w", err)
	}
}

// Live works for so long, with 0 until ctx ends, and returns how well it could. When d is
// over it says so to over, if not nil; what the canary waits for then it goes on waiting for.
func (c *Canary) Live(ctx context.Context, d time.Duration, over func()) (Slice, error) {
	if c.conn == nil {
		if err := c.Dial(ctx); err != nil {
			return Slice{}, err
		}
	}
	if over != nil {
		defer time.AfterFunc(d, over).Stop()
	}
	if c.RealTime { // collecting garbage stops the world, and a real-time thread waits for the others of its CPU then
		runtime.GC()
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	if d == 0 {
		d = forever
	}
	_, cpu := CPUs()
	c.rounds++
	var seen record
	began := time.Now()
	r, err := load.Run(ctx, []*initiator.Conn{c.conn}, load.Unit{BlockSize: 512, Blocks: Blocks}, load.Workload{
		Depth: c.Depth, Rate: c.Rate, Sizes: []load.Share{{Bytes: 4096, Weight: 1}}, ReadPercent: 70, Random: true,
		Seed: c.rounds, Verify: true, Runtime: d, CPU: cpu, RealTime: c.RealTime,
		Observe: func(_ int, started, ended int64) { seen.add(Span{started, ended}, c.Slow) },
	})
	s := seen.slice()
	if err != nil { // the session is gone, or a command has had no answer for long after it was over
		c.Losses = append(c.Losses, err.Error())
		c.conn.Close()
		c.conn = nil
		if d == forever {
			d = time.Since(began)
		}
		s.P99, s.Longest = max(s.P99, d), max(s.Longest, d)
		return s, nil
	}
	c.judge(r)
	s.Rate = r.IOPS
	return s, nil
}

// record is what is seen of commands.
type record struct {
	latency *hdrhistogram.Histogram
	longest time.Duration
	slow    []Span
}

func (r *record) add(one Span, slow time.Duration) {
	if r.latency == nil {
		r.latency = hdrhistogram.New(1, int64(time.Minute), 3)
	}
	_ = r.latency.RecordValue(min(int64(one.Took()), int64(time.Minute))) // never beyond its range
	if slow > 0 && one.Took() > slow {
		r.slow = append(r.slow, one)
		return
	}
	r.longest = max(r.longest, one.Took())
}

func (r *record) slice() Slice {
	if r.latency == nil {
		return Slice{}
	}
	return Slice{
		P50: time.Duration(r.latency.ValueAtQuantile(50)), P99: time.Duration(r.latency.ValueAtQuantile(99)),
		Longest: r.longest, Slow: r.slow,
	}
}

// judge notes what must not have happened.
func (c *Canary) judge(r *load.Result) {
	if v := r.Verification; v.Miscompares > 0 {
		c.Wrong = append(c.Wrong, v.First)
	}
	for status, n := range r.Statuses {
		c.Ended += int(n)
		c.Bad = fmt.Sprintf("%d commands ended with status %s; the first: %+v", n, status, *r.FirstFailure)
	}
}

// Leave ends the session.
func (c *Canary) Leave() {
	if c.conn != nil {
		if _, err := c.conn.Logout(0); err != nil {
			c.Losses = append(c.Losses, "logout: "+err.Error())
		}
		c.conn.Close()
	}
}
