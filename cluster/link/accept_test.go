package link_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
)

// short is a listener that has no descriptors until Close.
type short struct {
	net.Listener
	closed chan struct{}
}

func (s short) Accept() (net.Conn, error) {
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	default:
		return nil, errors.New("too many open files")
	}
}

func (s short) Close() error {
	close(s.closed)
	return s.Listener.Close()
}

// TestNoDescriptors: that connections cannot be accepted is told once, and not at each attempt.
func TestNoDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linktest.New()
		c, log := network.Config("a", "a.1"), &bytes.Buffer{}
		c.Transport.Listener = short{c.Transport.Listener, make(chan struct{})}
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
		l := link.New(c)
		l.Open()
		time.Sleep(time.Minute)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		network.Wait()
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("found %d lines in a minute, expected one", n)
		}
	})
}
