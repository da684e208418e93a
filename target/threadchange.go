package target

import "lunar/internal/evloop"

// SetPoll puts Config.Poll into force on all event threads, at the end of their pass.
func (s *Server) SetPoll(p evloop.Poll) {
	for _, th := range s.threads {
		th.loop.Post(evloop.Func(func() { th.loop.SetPoll(p) }))
	}
}
