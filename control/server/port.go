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
	server *http.Server
	at     net.Addr
	begin  func(net.Listener) *http.Server
}

// move serves at another address, or to others; an empty one is nowhere. After an error
// everything is as it was, unless it says that it is not.
func (p *port) move(to string, begin func(net.Listener) *http.Server) error {
	if to == "" {
		p.close()
		return nil
	}
	l, err := net.Listen("tcp", to)
	if errors.Is(err, syscall.EADDRINUSE) && p.server != nil { // maybe by all addresses of the port, or one of them
		was := p.at.String()
		p.close()
		if l, err = net.Listen("tcp", to); err != nil {
			back, lost := net.Listen("tcp", was)
			if lost != nil {
				return fmt.Errorf("%s: %w; not served at %s any more either: %w", p.key, err, was, lost)
			}
			p.open(back, p.begin)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.key, err)
	}
	p.close()
	p.open(l, begin)
	return nil
}

func (p *port) open(l net.Listener, begin func(net.Listener) *http.Server) {
	p.server, p.at, p.begin = begin(l), l.Addr(), begin
}

// close breaks off those who are asking.
func (p *port) close() {
	if p.server != nil {
		p.server.Close()
		p.server, p.at = nil, nil
	}
}
