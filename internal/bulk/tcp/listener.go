package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"lunar/internal/bulk/keyed"
	"lunar/internal/greetings"
	"lunar/internal/places"
)

// mostGreetings is how many connections may be on their way in.
const mostGreetings = 64

// Listener awaits who sends.
type Listener struct {
	*keyed.Door[*Sink]
	listener  net.Listener
	config    *tls.Config
	greetings *greetings.Greetings
}

// Listen listens at an address for who has the key.
func Listen(address string, key keyed.Key) (*Listener, error) {
	config, err := key.Config()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{Door: keyed.NewDoor[*Sink](), listener: listener, config: config, greetings: greetings.New(mostGreetings, func(c net.Conn) { _ = c.Close() })}
	go l.run()
	return l, nil
}

// Address is where it listens.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Close ends it, and the link of the last sender.
func (l *Listener) Close() error { return errors.Join(l.Door.Close(), l.listener.Close()) }

func (l *Listener) run() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // such as for want of descriptors
			case <-time.After(time.Second):
			case <-l.Closed():
				return
			}
			continue
		}
		from, _ := places.AddressOf(conn)
		if l.greetings.Begin(conn, l.ClassOf(from), from) {
			go l.greet(conn)
		} else {
			_ = conn.Close()
		}
	}
}

// greet finds out what a connection is. It closes those that are nothing.
func (l *Listener) greet(conn net.Conn) {
	defer l.greetings.End(conn)
	tune(conn)
	_ = conn.SetDeadline(time.Now().Add(keyed.HandshakeTime)) // a connection that has none fails below
	what := make([]byte, 1)
	_, err := io.ReadFull(conn, what)
	taken := false
	switch {
	case err != nil:
	case what[0] == controlChannel:
		taken = l.control(conn)
	case what[0] == dataChannel:
		taken = l.data(conn)
	}
	if !taken {
		_ = conn.Close()
	}
}

func (l *Listener) control(raw net.Conn) bool {
	c, err := keyed.Server(context.Background(), raw, l.config)
	l.greetings.End(raw) // it may have to wait in Enter
	return err == nil && l.Enter(&Sink{Sink: keyed.NewSink(c)})
}

func (l *Listener) data(conn net.Conn) bool {
	hello := make([]byte, keyed.HelloSize)
	if _, err := io.ReadFull(conn, hello); err != nil || conn.SetDeadline(time.Time{}) != nil {
		return false
	}
	s := l.Current()
	return s != nil && s.join(conn, hello)
}
