package target

import (
	"context"
	"fmt"
	"time"

	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// RemoveLogicalUnit closes the store of a logical unit that no target shows any
// more, when the commands of all sessions have ended, and everything that it
// acknowledged is stable. It waits for sessions until ctx ends. If closing
// fails, which may lose data if it were detached, the server keeps the logical
// unit and the call may be repeated.
func (s *Server) RemoveLogicalUnit(ctx context.Context, lu *scsi.LogicalUnit) error {
	s.ForgetRelayed(lu, "", func() {})
	if err := s.drainUnit(ctx, lu); err != nil {
		return fmt.Errorf("volume %s is in use: %w", lu.Name(), err)
	}
	if !s.beginRemoval(lu) {
		return fmt.Errorf("volume %s: it is in use, or the server is shutting down", lu.Name())
	}
	err := s.flush(lu)
	s.closeLanes(lu)
	if err == nil {
		err = lu.Close()
	}
	s.endRemoval(lu, err == nil)
	if err != nil {
		return fmt.Errorf("volume %s: %w%s", lu.Name(), err, unwritten(lu))
	}
	s.qos.forget(lu)
	return nil
}

// DetachLogicalUnit is RemoveLogicalUnit for a unit whose store does not take what it
// acknowledged: the cache keeps that, or with discard it is given up. dirty is how many
// bytes that are. Without discard, what would be lost is a reason to refuse.
func (s *Server) DetachLogicalUnit(ctx context.Context, lu *scsi.LogicalUnit, discard bool) (dirty int64, err error) {
	if !discard && !lu.Keeps() {
		return 0, fmt.Errorf("volume %s: no cache segment keeps its acknowledged data that are not stable, which would be lost%s", lu.Name(), unwritten(lu))
	}
	if err := s.drainUnit(ctx, lu); err != nil {
		return 0, fmt.Errorf("volume %s is in use: %w", lu.Name(), err)
	}
	if !s.beginRemoval(lu) {
		return 0, fmt.Errorf("volume %s: it is in use or being written right now, or the server is shutting down", lu.Name())
	}
	s.closeLanes(lu)
	dirty, err = lu.CloseDirty(discard)
	s.endRemoval(lu, err == nil)
	if err != nil {
		return dirty, fmt.Errorf("volume %s: %w", lu.Name(), err)
	}
	s.qos.forget(lu)
	return dirty, nil
}

// drainUnit waits until no session sees the logical unit and no command uses it.
// Commands that wait for something after DrainTime are ended with LOGICAL UNIT NOT
// SUPPORTED, copies as if they had been aborted: they stop by themselves before their
// next part, but may wait for their payments until then. A sanitize operation goes on.
func (s *Server) drainUnit(ctx context.Context, lu *scsi.LogicalUnit) error {
	overdue := time.NewTimer(s.settings.Load().DrainTime)
	defer overdue.Stop()
	for {
		seeing, held, less := s.seeing(lu)
		if len(seeing) == 0 && !held {
			return nil
		}
		select {
		case <-less:
		case <-ctx.Done():
			return fmt.Errorf("%d sessions: %w", len(seeing), ctx.Err())
		case <-overdue.C:
			for _, n := range seeing {
				n.state.post(n.state.failUnmapped)
			}
			s.endCopies([]*scsi.LogicalUnit{lu}, nil)
		}
	}
}

// seeing returns the sessions that see a logical unit, whether commands for
// others use it, and what is closed when some session sees less.
func (s *Server) seeing(lu *scsi.LogicalUnit) (sessions []*Session, held bool, less <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.mu.sessions {
		if n.sees(lu) {
			sessions = append(sessions, n)
		}
	}
	return sessions, s.mu.used[lu] > 0, s.mu.seenLess
}

// beginRemoval reports whether the caller may close the logical unit: a server
// that shuts down does so itself, and a command may just have begun to use it.
func (s *Server) beginRemoval(lu *scsi.LogicalUnit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing || s.mu.removing[lu] || s.mu.homes[lu] == nil || s.mu.used[lu] > 0 {
		return false
	}
	s.mu.removing[lu] = true
	s.removal.Add(1)
	return true
}

func (s *Server) endRemoval(lu *scsi.LogicalUnit, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.removing, lu)
	if closed {
		delete(s.mu.homes, lu)
		delete(s.mu.past, lu)
	}
	s.removal.Done()
}

// closeLanes closes the lanes that event threads have into a logical unit of
// which no command runs.
func (s *Server) closeLanes(lu *scsi.LogicalUnit) {
	for _, th := range s.threads {
		closed := make(chan struct{})
		th.loop.Post(evloop.Func(func() {
			if lane := th.lanes[lu]; lane != nil {
				lane.Close()
				delete(th.lanes, lu)
			}
			th.latency.record()
			th.latency.Forget(lu.Name())
			close(closed)
		}))
		<-closed
	}
}

// ReconfigureUnit puts settings of a logical unit into force, which initiators
// notice at once. If writes are to be stable from now on, what was acknowledged
// before is made stable; an error tells that this failed, or had not ended when ctx
// ended.
func (s *Server) ReconfigureUnit(ctx context.Context, lu *scsi.LogicalUnit, settings scsi.Settings) error {
	if !lu.Reconfigure(settings) {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- s.flush(lu) }()
	if err := await(ctx, ended); err != nil {
		return fmt.Errorf("volume %s: flush: %w%s", lu.Name(), err, unwritten(lu))
	}
	return nil
}
