package target_test

import (
	"sync"
	"testing"

	"lunar/target"
	"lunar/target/tcp"
)

// transports are TCP on the event threads of each server.
var transports sync.Map

// tcpOf returns a server's transport, which ends with it.
func tcpOf(t testing.TB, s *target.Server) *tcp.Transport {
	t.Helper()
	if found, ok := transports.Load(s); ok {
		return found.(*tcp.Transport)
	}
	transport, err := tcp.Open(tcp.Config{Loops: s.Loops(), Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	transports.Store(s, transport)
	s.OnStop(func() {
		transports.Delete(s)
		transport.Close()
	})
	return transport
}

// portals are portals over TCP at some addresses, not open yet.
func portals(t testing.TB, s *target.Server, addrs ...string) (out []target.Portal) {
	t.Helper()
	transport := tcpOf(t, s)
	for _, addr := range addrs {
		out = append(out, transport.Portal(addr))
	}
	return out
}
