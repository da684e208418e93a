package keyed

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"lunar/internal/places"
)

// Guest is the link of a sender.
type Guest interface {
	comparable
	From() (netip.Addr, bool)
	Closed() <-chan struct{}
	Close() error
}

// Door is where senders come in, one at a time: the next one takes the place of the one
// before, whose link is closed.
type Door[S Guest] struct {
	in      chan S
	closed  chan struct{}
	closing sync.Once

	mu      sync.Mutex
	current S // whose data channels may come in; zero: nobody's
}

// NewDoor makes one that is open.
func NewDoor[S Guest]() *Door[S] {
	return &Door[S]{in: make(chan S), closed: make(chan struct{})}
}

// Accept returns the link of the next sender.
func (d *Door[S]) Accept(ctx context.Context) (s S, err error) {
	select {
	case s = <-d.in:
		return s, nil
	case <-ctx.Done():
		return s, ctx.Err()
	case <-d.closed:
		return s, net.ErrClosed
	}
}

// Enter waits until somebody accepts a sender. False: it or the door was closed before.
func (d *Door[S]) Enter(s S) bool {
	var nobody S
	d.mu.Lock()
	before := d.current
	d.current = s
	d.mu.Unlock()
	if before != nobody {
		_ = before.Close()
	}
	select {
	case d.in <- s:
		return true
	case <-d.closed:
	case <-s.Closed():
	}
	_ = s.Close()
	return false
}

// ClassOf is what is known of an address from which somebody wants to come in: that the last sender
// is there, whose data channels come behind it, or nothing.
func (d *Door[S]) ClassOf(from netip.Addr) places.Class {
	var nobody S
	if s := d.Current(); s != nobody {
		if at, ok := s.From(); ok && places.Host(at) == places.Host(from) {
			return places.Known
		}
	}
	return places.Stranger
}

// Current is the link of the last sender; zero: there was none.
func (d *Door[S]) Current() S {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

// Closed is closed by Close.
func (d *Door[S]) Closed() <-chan struct{} { return d.closed }

// Close ends it, and the link of the last sender. It may be called again.
func (d *Door[S]) Close() (err error) {
	var nobody S
	d.closing.Do(func() { close(d.closed) })
	if s := d.Current(); s != nobody {
		err = s.Close()
	}
	return err
}
