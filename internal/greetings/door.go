package greetings

import (
	"errors"
	"io"
	"net"
	"time"

	"lunar/internal/places"
)

// Door is a listener whose Accept fails when it was closed, and for nothing else.
type Door struct {
	net.Listener
	// Told hears what keeps connections out, such as the want of descriptors: once, until one comes
	// in again.
	Told func(error)
}

// again is after how long it is tried again to accept.
const again = 50 * time.Millisecond

// Accept implements net.Listener. One goroutine at a time calls it.
func (d Door) Accept() (net.Conn, error) {
	for told := false; ; told = true {
		c, err := d.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
			return c, err
		}
		if !told {
			d.Told(err)
		}
		time.Sleep(again)
	}
}

// Hall is a Door whose connections have places of their own until they are closed. It is for servers
// that answer, and hang up.
type Hall struct {
	Door
	room *Greetings
}

// NewHall has all places for a listener's connections.
func NewHall(d Door, all int) *Hall {
	return &Hall{d, New(all, func(c net.Conn) { c.Close() })}
}

// Accept implements net.Listener.
func (h *Hall) Accept() (net.Conn, error) {
	for {
		c, err := h.Door.Accept()
		if err != nil {
			return nil, err
		}
		from, _ := places.AddressOf(c)
		if h.room.Begin(c, places.Stranger, from) {
			return &visitor{c, h.room}, nil
		}
		c.Close()
	}
}

// visitor is a connection that has a place.
type visitor struct {
	net.Conn
	room *Greetings
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.room.End(v.Conn)
	return v.Conn.Close()
}
