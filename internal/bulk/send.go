package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lunar/internal/pipeline/rftp"
)

// Origin is a volume that is sent.
type Origin struct {
	Name     string
	Size     int64 // bytes
	Unit     int   // of a logical block in bytes
	Physical int   // of a physical block in bytes
	Volume   *Volume
	// Known are the sums of blocks that need not be read, as Changed tells if that is so no
	// more; zero Sum, or nil: not known.
	Known []Sum
	// Changed returns the blocks that were altered since it was called last; nil: nobody
	// writes.
	Changed func() []int64
	// Hold calls last while nobody can write, with the volume to read then. It holds commands no
	// longer than its context lasts, and last no longer than its own.
	Hold func(ctx context.Context, last func(context.Context, *Volume) error) error
}

// Options are how a volume is sent.
type Options struct {
	Channels int // of data; at least 1
	Cores    int // for digests and ciphers
	// Incremental has the receiver not read what it has read again at the end of an earlier
	// move.
	Incremental bool
	Rate        int64 // bytes in a second that are read at most; 0: no bound
	Progress    *Progress
}

// Progress is how far something is, for any goroutine.
type Progress struct {
	what        atomic.Pointer[string]
	done, total atomic.Int64
	moved       atomic.Int64
}

// Moved returns how many bytes of data were sent, or stored, by all that has told this
// Progress.
func (p *Progress) Moved() int64 { return p.moved.Load() }

// Begin says what is waited for, of which nobody knows how much is done.
func (p *Progress) Begin(what string) { p.begin(what, 0) }

// begin begins a part of it.
func (p *Progress) begin(what string, total int64) {
	p.done.Store(0)
	p.total.Store(total)
	p.what.Store(&what)
}

// Now returns what is done, and how much of it in percent.
func (p *Progress) Now() (what string, percent int) {
	if w := p.what.Load(); w != nil {
		what = *w
	}
	if total := p.total.Load(); total > 0 {
		percent = int(p.done.Load() * 100 / total)
	}
	return what, min(percent, 100)
}

// Sent is what has come of Send.
type Sent struct {
	Blocks   int64 // of the volume
	Read     int64 // blocks that were read, with repetitions; of others nothing was stored, or they were Known
	Sent     int64 // blocks that went over the link, with repetitions
	Same     int64 // blocks that the receiver had already, or that both have as zeroes
	Altered  int64 // blocks that were sent again because they were written meanwhile
	Again    int64 // blocks that were damaged on their way
	Checksum Sum
	Sums     []Sum // of the blocks, as the receiver has them
}

const (
	// passes is how often what was altered meanwhile is sent while commands go on.
	passes = 12
	// fewBlocks is what is left to the last pass, for which commands are held.
	fewBlocks = 32
	// holdTime is how long that may take; then commands go on, and another pass follows.
	holdTime = 5 * time.Second
	// holds is how often it is tried.
	holds = 4
)

// ErrBusy says that a volume is written faster than it is sent.
var ErrBusy = errors.New("the volume is written faster than it is sent")

// Send sends a volume and returns when the receiver has all of it, read it again and found
// it equal. The link is closed then.
func Send(ctx context.Context, link SourceLink, o *Origin, x Options) (Sent, error) {
	greeted := context.AfterFunc(ctx, func() { _ = link.Close() })
	s, err := greet(link, o, x)
	greeted()
	if err != nil {
		return Sent{}, errors.Join(ctx.Err(), err, link.Close())
	}
	defer s.close()
	stop := context.AfterFunc(ctx, func() { s.fail(ctx.Err()) })
	defer stop()
	go s.listen()
	if err := s.all(ctx); err != nil {
		s.tell(err)
		s.fail(err)
		_ = s.rest() // which has failed with that, or before
		return s.result(), s.failure()
	}
	return s.result(), nil
}

// all sends all blocks, then what is altered meanwhile, and has the receiver check it.
func (s *sending) all(ctx context.Context) error {
	every := make([]int64, len(s.sums))
	for i := range every {
		every[i] = int64(i)
	}
	err := s.pass(ctx, "sent", every, s.origin.Volume)
	s.known = nil
	if err != nil {
		return err
	}
	if s.origin.Changed == nil {
		if err := s.settle(ctx, s.origin.Volume); err != nil {
			return err
		}
	} else if err := s.converge(ctx); err != nil {
		return err
	}
	s.progress.begin("read again by the receiver", 0)
	sum := s.zero.checksum(s.sums)
	s.message(&rftp.Message{Type: rftp.DatasetComplete, Count: s.sequence.Load(), Checksum: sum})
	select {
	case m := <-s.whole:
		if !m.OK || Sum(m.Checksum) != sum {
			return fmt.Errorf("the receiver has found checksum %x, expected %x", m.Checksum, sum)
		}
		return nil
	case <-s.broken:
		return s.failure()
	}
}

// converge sends what was altered meanwhile, again and again, and the last of it while
// commands are held.
func (s *sending) converge(ctx context.Context) error {
	left := s.origin.Changed()
	for range passes {
		if len(left) <= fewBlocks {
			break
		}
		s.altered.Add(int64(len(left)))
		if err := s.pass(ctx, "sent again, because it was written meanwhile", left, s.origin.Volume); err != nil {
			return err
		}
		left = s.origin.Changed()
	}
	if len(left) > 8*fewBlocks {
		return fmt.Errorf("%w: %d blocks were altered in the last pass", ErrBusy, len(left))
	}
	for range holds {
		err := held(ctx, s.origin, func(ctx context.Context, v *Volume) error {
			left = merged(left, s.origin.Changed())
			s.altered.Add(int64(len(left)))
			if err := s.pass(ctx, "the last of it is sent while commands are held", left, v); err != nil {
				return err
			}
			return s.settle(ctx, v)
		})
		if err == nil || s.failure() != nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := s.rest(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the last of it takes longer than %v", ErrBusy, holdTime)
}

// held calls last while commands are held. They are for holdTime, with the wait for those that
// are under way.
func held(ctx context.Context, o *Origin, last func(context.Context, *Volume) error) error {
	ctx, cancel := context.WithTimeout(ctx, holdTime)
	defer cancel()
	return o.Hold(ctx, last)
}

// merged are the numbers of both.
func merged(a, b []int64) []int64 {
	in := make(map[int64]bool, len(a))
	for _, n := range a {
		in[n] = true
	}
	for _, n := range b {
		if !in[n] {
			a = append(a, n)
		}
	}
	return a
}
