package rftp

import (
	"fmt"

	"lunar/internal/pipeline"
)

// Source decides which block goes where, and when to ask for credits. Its caller loads the
// blocks, moves data and sends messages.
type Source struct {
	ordered bool
	credits []Credit
	loaded  []*pipeline.Block          // with data, the oldest first
	sending map[*pipeline.Block]Credit // under way
	asked   bool                       // for credits, and not answered
}

// NewSource returns a source without credits. With ordered the sink hears of a block by the
// channel of its data, and BLOCK_DONE is not sent besides.
func NewSource(ordered bool) *Source {
	return &Source{ordered: ordered, sending: map[*pipeline.Block]Credit{}}
}

// Loaded takes a block that has its data: loaded, or processed.
func (s *Source) Loaded(b *pipeline.Block) { s.loaded = append(s.loaded, b) }

// Granted takes the credits of an MR_RESPONSE.
func (s *Source) Granted(c []Credit) {
	s.credits = append(s.credits, c...)
	if len(c) > 0 {
		s.asked = false
	}
}

// Post returns a block and the credit that it is to be written with; nil: there is nothing
// to post now.
func (s *Source) Post() (b *pipeline.Block, c Credit, err error) {
	if len(s.loaded) == 0 || len(s.credits) == 0 {
		return nil, c, nil
	}
	b, c = s.loaded[0], s.credits[0]
	s.loaded, s.credits = append(s.loaded[:0], s.loaded[1:]...), append(s.credits[:0], s.credits[1:]...)
	s.sending[b] = c
	return b, c, b.Do(pipeline.Source, pipeline.Post)
}

// Asks reports whether MR_REQUEST is to be sent now: there is a block and no credit, and
// none was asked for.
func (s *Source) Asks() bool {
	if s.asked || len(s.loaded) == 0 || len(s.credits) > 0 {
		return false
	}
	s.asked = true
	return true
}

// Completed says how a block that was posted has ended, and returns the message that the
// sink is to get; nil: none. A block that failed is posted again with another credit; one
// that did not is free.
func (s *Source) Completed(b *pipeline.Block, done bool) (*Message, error) {
	c, under := s.sending[b]
	if !under {
		return nil, fmt.Errorf("block %d has completed and was not posted", b.Sequence)
	}
	delete(s.sending, b)
	m := &Message{Type: BlockDone, Session: b.Session, Sequence: b.Sequence, Addr: c.Addr}
	if !done {
		if err := b.Do(pipeline.Source, pipeline.Fail); err != nil {
			return nil, err
		}
		s.loaded = append(s.loaded, b)
		m.Flags = FlagUnused
		return m, nil
	}
	if err := b.Do(pipeline.Source, pipeline.Complete); err != nil {
		return nil, err
	}
	if s.ordered {
		m = nil
	}
	return m, b.Do(pipeline.Source, pipeline.Release)
}

// Credits counts the credits that are there.
func (s *Source) Credits() int { return len(s.credits) }

// Waiting counts the blocks that wait for a credit.
func (s *Source) Waiting() int { return len(s.loaded) }

// UnderWay counts the blocks that are being written.
func (s *Source) UnderWay() int { return len(s.sending) }
