package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"lunar/cluster"
)

// Watch is cluster.State.Watch.
func (s *State) Watch(ctx context.Context, prefix string, from cluster.Revision) <-chan cluster.Batch {
	out := make(chan cluster.Batch)
	s.background(&s.feels, s.feel)
	go func() {
		defer close(out)
		for {
			err := s.follow(ctx, prefix, &from, out)
			if s.c.closed.Err() != nil {
				err = cluster.ErrClosed
			}
			if errors.Is(err, cluster.ErrCompacted) || errors.Is(err, cluster.ErrClosed) {
				select {
				case out <- cluster.Batch{Err: err}:
				case <-ctx.Done():
				}
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// follow reports what one member has to tell behind *from, which it moves on, until that
// member fails or is left for another.
func (s *State) follow(ctx context.Context, prefix string, from *cluster.Revision, out chan<- cluster.Batch) error {
	member, left := s.c.here()
	stream, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.c.closed, end)()
	go func() {
		select {
		case <-left:
			end()
		case <-stream.Done():
		}
	}()
	var r watchRequest
	r.Create.StartRevision = int64(*from) + 1
	r.Create.Key, r.Create.RangeEnd = within(prefix)
	body, err := s.c.post(stream, member, "/v3/watch", r)
	if err != nil {
		s.leaveUnless(stream, member)
		return err
	}
	defer body.Close()
	err = s.receive(stream, body, from, out)
	if !errors.Is(err, cluster.ErrCompacted) {
		s.leaveUnless(stream, member)
	}
	return err
}

// leaveUnless leaves a member that ended a stream, and not one whose stream was ended.
func (s *State) leaveUnless(stream context.Context, member string) {
	if stream.Err() == nil {
		s.c.leave(member)
	}
}

// receive reports the messages of a stream.
func (s *State) receive(ctx context.Context, body io.Reader, from *cluster.Revision, out chan<- cluster.Batch) error {
	for messages := json.NewDecoder(body); ; {
		var m streamed[watchAnswer]
		if err := messages.Decode(&m); err != nil {
			return err
		}
		switch {
		case m.Error != nil:
			return m.Error
		case m.Result.CompactRevision > 0 || strings.Contains(m.Result.CancelReason, "compacted"):
			return cluster.ErrCompacted
		case m.Result.Canceled:
			return errors.New(m.Result.CancelReason)
		case m.Result.Created && m.Result.Header.Revision < int64(*from):
			if err := s.younger(ctx, *from); err != nil {
				return err
			}
			continue
		case len(m.Result.Events) == 0:
			continue
		}
		b := batchOf(m.Result.Events)
		select {
		case out <- b:
			*from = b.Revision
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// younger returns ErrCompacted if the state has not come as far as a revision that was seen of
// it: it is that of an older backup, and what a Watch from there would tell is none of what
// has happened. The member that was asked first may only be behind the others.
func (s *State) younger(ctx context.Context, from cluster.Revision) error {
	_, at, err := s.Get(ctx, "\x00")
	if err == nil && at < from {
		err = cluster.ErrCompacted
	}
	return err
}

func batchOf(events []watchEvent) (b cluster.Batch) {
	for _, e := range events {
		b.Events = append(b.Events, cluster.Event{Item: e.KV.item(), Deleted: e.Type == "DELETE"})
		b.Revision = max(b.Revision, cluster.Revision(e.KV.ModRevision))
	}
	return b
}

// probes is how often the member that watches hang on is asked whether it still hears of
// a leader: one that is stopped, or cut off from the others, would tell of nothing.
const probes = time.Second

// feel asks the present member for nothing, so that it is left if it does not answer.
func (s *State) feel() {
	for {
		select {
		case <-time.After(probes):
		case <-s.c.closed.Done():
			return
		}
		_ = s.c.ask(s.c.closed, "/v3/kv/range", rangeRequest{Key: []byte{0}, Limit: 1}, &rangeAnswer{}, true)
	}
}
