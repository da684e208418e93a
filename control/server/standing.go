package server

import (
	"context"
	"fmt"
	"time"

	"lunar/control"
)

// standingTime is how often it is asked whether those may go on who wait or are told
// without an end.
const standingTime = time.Second

// standing is whether somebody may still what he asked for. An answer that goes on, and a
// change that waits for others, may outlast the token, the certificate or the group of who
// asked.
type standing struct {
	now   func() Caller // who he is as things are now
	needs control.Role  // of what he asks for
}

// revoked says why he may not any more; nil: he may. Nobody takes anything from a nil
// standing, which is the server's own.
func (s *standing) revoked() error {
	if s == nil {
		return nil
	}
	if c := s.now(); c.Role < s.needs {
		return fmt.Errorf("found %s with role %s by now, expected role %s", c, c.Role, s.needs)
	}
	return nil
}

// standingOf is that of who makes a request.
func standingOf(ctx context.Context) *standing {
	s, _ := ctx.Value(standingKey).(*standing)
	return s
}
