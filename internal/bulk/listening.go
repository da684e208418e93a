package bulk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lunar/internal/pipeline/rftp"
)

// listen takes what the receiver says.
func (s *sending) listen() {
	for {
		m, err := s.link.Receive()
		if err == nil {
			err = s.hear(&m)
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *sending) hear(m *rftp.Message) error {
	switch m.Type {
	case rftp.MRResponse:
		s.mu.Lock()
		s.source.Granted(m.Credits)
		s.mu.Unlock()
		s.post()
	case rftp.BlockAgain:
		return s.damage(m.Addr)
	case rftp.DatasetComplete:
		to := s.settled
		if m.Flags&rftp.FlagReceived == 0 {
			to = s.whole
		}
		select {
		case <-to: // an answer that nobody has waited for
		default:
		}
		to <- *m // nobody else sends
	case rftp.Failed:
		return fmt.Errorf("the receiver has ended it: %s", m.Text)
	default:
		return fmt.Errorf("found %v, which a receiver does not send now", m.Type)
	}
	return nil
}

// damage has the block that was written to an address sent again.
func (s *sending) damage(addr uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, known := s.at[addr]
	if !known {
		return fmt.Errorf("the receiver asks again for a block at %#x, where none was sent", addr)
	}
	s.again.Add(1)
	if s.asked[block]++; s.asked[block] > mostAgain {
		return fmt.Errorf("the block at %d was damaged %d times on its way", block*BlockSize, s.asked[block])
	}
	s.redo = append(s.redo, block)
	select {
	case s.damaged <- struct{}{}:
	default:
	}
	return nil
}

// settle returns when the receiver has stored everything that was sent, and what was damaged
// on its way a second time.
func (s *sending) settle(ctx context.Context, v *Volume) error {
	for {
		s.mu.Lock()
		redo := s.redo
		s.redo = nil
		s.answered += uint64(len(redo))
		answered := s.answered
		s.mu.Unlock()
		if len(redo) > 0 {
			// In a pass a block is once: two of its stages would have one place for its sum.
			once := slices.Compact(slices.Sorted(slices.Values(redo)))
			if err := s.pass(ctx, "sent again, because it was damaged", once, v); err != nil {
				s.mu.Lock()
				s.redo = append(s.redo, redo...)
				s.answered -= uint64(len(redo))
				s.mu.Unlock()
				return err
			}
		}
		if settled, err := s.isSettled(ctx, answered); settled || err != nil {
			return err
		}
	}
}

// isSettled asks whether the receiver has stored everything. False: something was damaged.
func (s *sending) isSettled(ctx context.Context, answered uint64) (bool, error) {
	count := s.sequence.Load()
	s.message(&rftp.Message{Type: rftp.DatasetComplete, Flags: rftp.FlagReceived, Count: count, Sequence: answered})
	for {
		select {
		case m := <-s.settled:
			if m.Count == count { // else it answers a question that was not waited for
				return true, nil
			}
		case <-s.damaged:
			return false, nil
		case <-s.broken:
			return false, s.failure()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// fail ends the session. The first reason counts.
func (s *sending) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	under := s.under
	s.under = nil
	s.mu.Unlock()
	close(s.broken)
	_ = s.link.Close()
	for _, done := range under {
		done(false, err)
	}
}

// reasonTime is how long the receiver's reason may be on its way in.
const reasonTime = 2 * time.Second

// failLater ends the session because a connection is broken, unless the receiver has told why.
func (s *sending) failLater(err error) {
	time.AfterFunc(reasonTime, func() { s.fail(err) })
}

// failure is why the session has ended; nil: it has not.
func (s *sending) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// tell tells the receiver why the session ends, if it can be told.
func (s *sending) tell(err error) {
	if s.failure() == nil {
		_ = s.link.Send(&rftp.Message{Type: rftp.Failed, Session: s.session, Text: err.Error()})
	}
}
