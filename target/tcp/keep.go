package tcp

import "net"

// inherit takes over the socket that an earlier process listened on, and with it the
// connections that have come meanwhile; nil: there is none that can be used.
func (p *portal) inherit() (*net.TCPListener, error) {
	if p.keeper == nil {
		return nil, nil
	}
	file := p.keeper.Take(p.name)
	if file == nil {
		return nil, nil
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err == nil {
		if socket, ok := l.(*net.TCPListener); ok {
			return socket, p.congestion.adopt(socket)
		}
		l.Close()
	}
	p.log.Warn("what was kept for a portal is no TCP socket that listens: it opens another", "portal", p.name, "err", err)
	return nil, p.keeper.Drop(p.name)
}

// keep has a new socket outlive the process. Without that the portal works until then.
func (p *portal) keep(l *net.TCPListener) {
	if p.keeper == nil {
		return
	}
	if err := p.keeper.Keep(p.name, l); err != nil {
		p.log.Warn("a portal will be closed during a restart", "portal", p.name, "err", err)
	}
}
