package target_test

import (
	"sync"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target/scsi"
)

// stalled is another node whose initiators neither take data nor send them: what follows up on
// commands is answered there, and that is not heard of.
type stalled struct {
	mu          sync.Mutex
	under, most int // bytes that were not answered
	answers     []func()
}

func (s *stalled) takes(m scsi.Message, done func([]byte, error)) func([]byte, error) {
	n := m.Room
	for _, part := range m.Body {
		n += len(part)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under += n
	s.most = max(s.most, s.under)
	return func(answer []byte, err error) {
		answer = append([]byte(nil), answer...)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers = append(s.answers, func() { s.under -= n; done(answer, err) })
	}
}

func (s *stalled) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.under
}

// goOn has the answers be heard that have come.
func (s *stalled) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answer := range s.answers {
		answer()
	}
	s.answers = nil
}

// TestRelayFollows: an initiator that does not take its data, or does not send them, holds a bounded
// part of its node's memory, whatever it asks for; when it goes on, all its commands end well.
func TestRelayFollows(t *testing.T) {
	const size, most = 1 << 20, 2<<20 + 64<<10 // with what is beside data
	for name, cmd := range map[string]func(lba uint64) initiator.Command{
		"reads": func(lba uint64) initiator.Command {
			return initiator.Command{CDB: cdbRead16(lba, size/512), InLen: size}
		},
		"writes": func(lba uint64) initiator.Command {
			return initiator.Command{CDB: cdbWrite16(lba, size/512), Out: pattern(size, 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig(t, 2)
			far, s := r.nodes[1].ready(1), &stalled{}
			r.nodes[0].follows.Store(s)
			var tasks []*initiator.Task
			for i := range uint64(8) {
				tasks = append(tasks, start(t, far, cmd(i*size/512)))
			}
			ended := make(chan struct{})
			go func() {
				for _, task := range tasks {
					res, err := far.Wait(task)
					if err != nil || res.Status != 0 {
						t.Errorf("found %+v, %v", res, err)
					}
				}
				close(ended)
			}()
			eventually.Holds(t, "as much is under way as may be", func() bool { return s.waits() > most/2 })
			eventually.Holds(t, "all commands end", func() bool {
				s.goOn()
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			if s.most > most {
				t.Errorf("found %d bytes under way, expected %d at most", s.most, most)
			}
		})
	}
}
