package target

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

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
			th.batching.start(*p.Batching, th)
		}))
	}
}

// SetCongestion changes Config.Congestion for connections that come from now on. The
// portals have it all or none.
func (s *Server) SetCongestion(name string) error {
	before := s.congestionName()
	if err := s.congest(name); err != nil {
		return errors.Join(err, s.congest(before))
	}
	s.congestion.Store(&name)
	return nil
}

// congestionName is empty for the system's.
func (s *Server) congestionName() string {
	if name := s.congestion.Load(); name != nil {
		return *name
	}
	return ""
}

// systemCongestion is where the kernel says what connections have without a choice.
const systemCongestion = "/proc/sys/net/ipv4/tcp_congestion_control"

// congest sets the congestion control of all portals.
func (s *Server) congest(name string) error {
	if name == "" {
		text, err := os.ReadFile(systemCongestion)
		if err != nil {
			return fmt.Errorf("congestion control of the system: %w", err)
		}
		name = string(bytes.TrimSpace(text))
	}
	for _, g := range s.portalGroups() {
		for _, l := range g.listeners {
			if err := setCongestionOf(l.(*net.TCPListener), name); err != nil {
				return fmt.Errorf("portal %s: %w", l.Addr(), err)
			}
		}
	}
	return nil
}

func setCongestionOf(l syscall.Conn, name string) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return congest(raw, name)
}

// congest sets the congestion control of a socket.
func congest(raw syscall.RawConn, name string) error {
	var refused error
	err := raw.Control(func(fd uintptr) { refused = setCongestion(int(fd), name) })
	return errors.Join(err, refused)
}
