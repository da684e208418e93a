package tcp

import (
	"log/slog"
	"net"
	"os"
	"syscall"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/bottleneck"
	"lunar/target/login"
)

// Config says what a Transport is made of.
type Config struct {
	Loops      []*evloop.Loop // event threads that connections may be on
	Logger     *slog.Logger
	Congestion string            // congestion control of connections by its name in the kernel, or AutoCongestion; empty: the system's
	Keeper     Keeper            // of the sockets that listen; nil: they end with the process
	Links      *bottleneck.Links // that governed connections share with other transports; nil: their own
}

// Keeper has listening sockets outlive the process, each under its address as it was
// configured.
type Keeper interface {
	// Take returns the socket of an earlier process, which is the caller's; nil: there
	// is none.
	Take(addr string) *os.File
	// Keep keeps a socket that stays the caller's.
	Keep(addr string, socket syscall.Conn) error
	// Drop closes a socket that is not wanted any more.
	Drop(addr string) error
}

// Transport is TCP on the event threads of a server.
type Transport struct {
	log        *slog.Logger
	scratches  scratches
	congestion congestion
	keeper     Keeper
	links      links
}

// Open makes the transport of a server's event threads. Close follows before they end.
func Open(config Config) (*Transport, error) {
	t := &Transport{log: config.Logger, scratches: make(scratches), keeper: config.Keeper}
	if t.log == nil {
		t.log = slog.Default()
	}
	t.links.log, t.links.Links = t.log, config.Links
	if t.links.Links == nil {
		t.links.Links = new(bottleneck.Links)
	}
	t.congestion.mu.name, t.congestion.mu.open = config.Congestion, make(map[*net.TCPListener]bool)
	for _, loop := range config.Loops {
		if err := t.scratches.add(loop); err != nil {
			t.Close()
			return nil, err
		}
		t.scratches[loop].links = &t.links
	}
	return t, nil
}

// Datamover takes over a non-blocking stream socket whose login is over.
func (t *Transport) Datamover(fd int, p *login.ConnectionParams) target.Datamover {
	return newMover(t.scratches, fd, p)
}

// Close gives the memory back. All portals are closed, and all connections have ended.
func (t *Transport) Close() { t.scratches.release() }

// SetCongestion changes Config.Congestion for connections that come from now on. The
// portals have it all or none.
func (t *Transport) SetCongestion(name string) error { return t.congestion.change(name) }

// newMover takes over a non-blocking stream socket.
func newMover(all scratches, fd int, p *login.ConnectionParams) *mover {
	m := &mover{
		all:          all,
		fd:           fd,
		headerDigest: p.HeaderDigest,
		dataDigest:   p.DataDigest,
		maxRecv:      int(p.TargetMaxRecvDataSegmentLength),
		maxDataIn:    int(p.InitiatorMaxRecvDataSegmentLength),
	}
	m.rx.again, m.rx.reach = evloop.Func(m.receiveAgain), readLeast
	m.drain.Fire = func() { m.end() }
	m.tx.copying.Fire = m.copyLoans
	return m
}
