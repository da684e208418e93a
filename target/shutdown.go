package target

import (
	"context"
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// errUnended says that a store was still busy when the time was over.
var errUnended = errors.New("it has not ended")

// retire makes all stores stable and closes them, all at the same time. left says
// that sessions have not ended. What does not end in time is left to the end of
// the process: its lanes cannot be closed.
func (s *Server) retire(left error) error {
	s.ForgetRelayed(nil, "", func() {}) // on the threads, ahead of what follows there
	if !s.endBackgrounds() {
		left = errors.Join(left, errors.New("commands in the background have not ended"))
	}
	err := errors.Join(left, s.awaitRemovals(), s.forEachUnit("flush", s.flush))
	if left != nil || errors.Is(err, errUnended) {
		return err
	}
	s.stopThreads()
	return errors.Join(err, s.forEachUnit("close", (*scsi.LogicalUnit).Close))
}

// awaitRemovals waits for logical units that are being closed already.
func (s *Server) awaitRemovals() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.settings.Load().FlushTime)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		s.removal.Wait()
		ended <- nil
	}()
	if err := await(ctx, ended); err != nil {
		return fmt.Errorf("a volume that was removed is still being closed: %w", err)
	}
	return nil
}

// forEachUnit does something with all logical units and waits for FlushTime at
// most. The error tells of each unit that failed what it has not written.
func (s *Server) forEachUnit(what string, do func(*scsi.LogicalUnit) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.settings.Load().FlushTime)
	defer cancel()
	units := s.LogicalUnits()
	ended := make([]chan error, len(units))
	for i, lu := range units {
		ended[i] = make(chan error, 1)
		go func() { ended[i] <- do(lu) }()
	}
	var errs []error
	for i, lu := range units {
		if err := await(ctx, ended[i]); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %s: %w%s", lu.Name(), what, err, unwritten(lu)))
		}
	}
	return errors.Join(errs...)
}

// await returns how something has ended, or errUnended.
func await(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended: // both were there
		return err
	default:
		return errUnended
	}
}

// endBackgrounds ends what goes on without an initiator, and reports whether all
// of it has ended in time.
func (s *Server) endBackgrounds() bool {
	ctx, cancel := context.WithTimeout(context.Background(), s.settings.Load().FlushTime)
	defer cancel()
	ended := make(chan error, len(s.threads))
	for _, th := range s.threads {
		th.loop.Post(evloop.Func(func() {
			th.ending = true
			th.endBackgrounds(func() { ended <- nil })
		}))
	}
	for range s.threads {
		if await(ctx, ended) != nil {
			return false
		}
	}
	return true
}

// unwritten tells of data that a logical unit has acknowledged and its medium
// does not have.
func unwritten(lu *scsi.LogicalUnit) string {
	if s, ok := lu.Store().(backstore.WriteBack); ok {
		if n := s.Dirty(); n > 0 {
			return fmt.Sprintf("; %d bytes that it acknowledged are not written yet", n)
		}
	}
	return ""
}

// flush makes what a logical unit acknowledged stable.
func (s *Server) flush(lu *scsi.LogicalUnit) error {
	done, th := make(chan error, 1), s.groupOf(lu)[0]
	th.loop.Post(evloop.Func(func() { th.flush(lu, done) }))
	return <-done
}

// flush runs on the thread.
func (th *thread) flush(lu *scsi.LogicalUnit, done chan<- error) {
	lane, err := th.lane(lu)
	if err != nil {
		done <- err
		return
	}
	op := &backstore.Op{Kind: backstore.Flush, Done: func(op *backstore.Op) { done <- op.Err }}
	if lane.Submit(op) {
		done <- op.Err
	}
}
