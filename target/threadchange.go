package target

import (
	"lunar/internal/evloop"
	"lunar/scheduler/batch"
)

// Pacing says how event threads wait for work and gather it, as Config does.
type Pacing struct {
	Poll     evloop.Poll
	Batching *batch.Config // nil is adaptive
}

// Repace puts a pacing into force on all event threads, at the end of their pass.
func (s *Server) Repace(p Pacing) {
	if p.Batching == nil {
		p.Batching = defaultBatching()
	}
	for _, th := range s.threads {
		th.loop.Post(evloop.Func(func() {
			th.loop.SetPoll(p.Poll)
			th.batching.start(*p.Batching, th.loop, th.gate)
		}))
	}
}
