package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// port is a TCP port at which something is served, if at any.
type port struct {
	key    string // of the configuration, for messages
	to     string // as the configuration has it
	server *http.Server
	listen net.Listener
	at     net.Addr
	begin  func(net.Listener) *http.Server
	leave  func(*http.Server) // serves nobody else, and those who are asking to the end
}

// move serves at another address, or to others; an empty one is nowhere. Who is asking
// gets an answer. After an error everything is as it was, unless it says that it is not.
func (p *port) move(to string, begin func(net.Listener) *http.Server) error {
	if to == "" {
		p.close()
		return nil
	}
	l, err := net.Listen("tcp", to)
	if errors.Is(err, syscall.EADDRINUSE) && p.server != nil { // maybe by all addresses of the port, or one of them
		was, before := p.at.String(), p.to
		p.close()
		if l, err = net.Listen("tcp", to); err != nil {
			back, lost := net.Listen("tcp", was)
			if lost != nil {
				return fmt.Errorf("%s: %w; not served at %s any more either: %w", p.key, err, was, lost)
			}
			p.open(back, before, p.begin)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.key, err)
	}
	p.close()
	p.open(l, to, begin)
	return nil
}

func (p *port) open(l net.Listener, to string, begin func(net.Listener) *http.Server) {
	p.server, p.listen, p.at, p.to, p.begin = begin(l), l, l.Addr(), to, begin
}

func (p *port) close() {
	if p.server != nil {
		p.leave(p.server)
		_ = p.listen.Close() // a server that has not begun to listen leaves it open
		p.server, p.at, p.to = nil, nil, ""
	}
}
