package tcp

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// maxGreeting is how many connections may be on their way in; more are closed.
const maxGreeting = 16

// Listener awaits who sends.
type Listener struct {
	listener net.Listener
	config   *tls.Config
	greeting chan struct{}
	sinks    chan *Sink
	closed   chan struct{}
	closing  sync.Once

	mu      sync.Mutex
	current *Sink // whose data channels may come in
}

// Listen listens at an address for who has the key.
func Listen(address string, key Key) (*Listener, error) {
	config, err := key.config(receiver, sender)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{listener: listener, config: config, greeting: make(chan struct{}, maxGreeting), sinks: make(chan *Sink), closed: make(chan struct{})}
	go l.run()
	return l, nil
}

// Address is where it listens.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Accept returns the link of the next sender. It takes the place of the one before, whose
// link is closed.
func (l *Listener) Accept(ctx context.Context) (*Sink, error) {
	select {
	case s := <-l.sinks:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends it, and the link of the last sender.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.listener.Close()
	if l.current != nil {
		err = errors.Join(err, l.current.Close())
	}
	return err
}

func (l *Listener) run() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // such as for want of descriptors
			case <-time.After(time.Second):
			case <-l.closed:
				return
			}
			continue
		}
		select {
		case l.greeting <- struct{}{}:
			go l.greet(conn)
		default:
			_ = conn.Close()
		}
	}
}

// greet finds out what a connection is. It closes those that are nothing.
func (l *Listener) greet(conn net.Conn) {
	defer func() { <-l.greeting }()
	tune(conn)
	_ = conn.SetDeadline(time.Now().Add(handshakeTime)) // a connection that has none fails below
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
	conn := tls.Server(raw, l.config)
	if conn.Handshake() != nil || raw.SetDeadline(time.Time{}) != nil {
		return false
	}
	c, err := newControl(conn)
	if err != nil {
		return false
	}
	s := &Sink{control: c, in: make(chan arrival, 64)}
	l.mu.Lock()
	before := l.current
	l.current = s
	l.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	go s.pump()
	select {
	case l.sinks <- s:
		return true
	case <-l.closed:
	case <-s.closed:
	}
	_ = s.Close()
	return false
}

func (l *Listener) data(conn net.Conn) bool {
	head := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, head); err != nil || conn.SetDeadline(time.Time{}) != nil {
		return false
	}
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	return s != nil && s.join(conn, head)
}

// same compares without telling by its time how much is equal.
func same(a, b []byte) bool { return len(a) > 0 && subtle.ConstantTimeCompare(a, b) == 1 }
