package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// read reads frames until the connection ends.
func (c *Conn) read() error {
	r := bufio.NewReaderSize(&hearer{Conn: c.Conn, silence: c.Silence}, ioSize)
	for {
		h, err := readHeader(r)
		if err == nil {
			err = c.frame(r, h)
		}
		if err != nil {
			return err
		}
	}
}

// hearer reads a connection, which fails when nothing has come for silence. While nobody reads,
// since the other node's messages take all memory, that is no fault of the other node.
type hearer struct {
	net.Conn
	silence time.Duration
	set     time.Time // when the deadline was
}

// Read implements net.Conn.
func (h *hearer) Read(b []byte) (int, error) {
	if now := time.Now(); now.Sub(h.set) > h.silence/8 {
		if err := h.SetReadDeadline(now.Add(h.silence)); err != nil {
			return 0, err
		}
		h.set = now
	}
	return h.Conn.Read(b)
}

// belongs reports whether a frame of a sort has a place on the connection.
func (c *Conn) belongs(s sort) bool {
	switch s {
	case beat:
		return true
	case answer, refusal:
		return c.Made && !c.Beats
	case request, oneWay:
		return !c.Made && !c.Beats
	}
	return false
}

// frame reads the body of a frame, and does what it is for.
func (c *Conn) frame(r io.Reader, h header) error {
	if !c.belongs(h.sort) {
		return fmt.Errorf("found a frame of sort %d, which has no place here", h.sort)
	}
	bounded := h.sort == request || h.sort == oneWay
	if bounded && !c.Memory.take(h.takes(), c.stop) {
		return ErrClosed
	}
	b := newBuffer(int(h.length))
	if _, err := io.ReadFull(r, b.bytes); err != nil {
		b.free()
		if bounded {
			c.Memory.give(h.takes())
		}
		return err
	}
	switch h.sort {
	case beat:
		if c.Beats {
			c.Beat(h.number, b.bytes)
		}
		b.free()
	case answer, refusal:
		c.answered(h, b)
	default:
		c.handle(h, b)
	}
	return nil
}

// takes is how many bytes a message takes until it was answered.
func (h *header) takes() int64 { return int64(h.length) + int64(h.room) + headerSize }

// answered ends a call.
func (c *Conn) answered(h header, b *buffer) {
	defer b.free()
	c.mu.Lock()
	a, there := c.calls[h.number]
	delete(c.calls, h.number)
	c.mu.Unlock()
	if there {
		c.Counts.of(a.kind).Open.Add(-1)
	}
	switch {
	case !there:
	case h.sort == refusal:
		a.done(nil, fmt.Errorf("node %s: %w: it refuses the message: %s", c.Peer, ErrUnreachable, b.bytes))
	default:
		a.done(b.bytes, nil)
	}
}

// reply is what is owed for a message.
type reply struct {
	conn *Conn
	header
	body *buffer
	over atomic.Bool
}

// handle has a message be taken.
func (c *Conn) handle(h header, b *buffer) {
	r := &reply{conn: c, header: h, body: b}
	n := c.Counts.of(h.kind)
	n.Taken.Add(1)
	n.Held.Add(1)
	if !c.Handle(h.kind, b.bytes, r.answer) {
		r.end(refusal, [][]byte{fmt.Appendf(nil, "kind %d is not known here", h.kind)})
	}
}

// answer is what takes a message calls.
func (r *reply) answer(body ...[]byte) { r.end(answer, body) }

// give frees what the message takes.
func (r *reply) give() {
	r.conn.Counts.of(r.kind).Held.Add(-1)
	r.conn.Memory.give(r.takes())
}

// slack is how much longer than its room an answer may be.
const slack = 16 << 10

// end frees what the message takes, once what answers it was written.
func (r *reply) end(as sort, body [][]byte) {
	if r.over.Swap(true) {
		panic("link: a message was answered twice") // its bytes are somebody else's by now
	}
	if n := sizeOf(body); r.sort == request && n > min(int(r.room)+slack, MaxBody) {
		r.conn.End(fmt.Errorf("found an answer of %d bytes to a message of kind %d, expected at most the %d for which it has room", n, r.kind, r.room))
		body = nil
	}
	if r.sort == oneWay {
		r.body.free()
		r.give()
		return
	}
	own := copied(body) // which may be the message's own
	r.body.free()
	if r.conn.put(frame{header: header{sort: as, kind: r.kind, number: r.number}, own: own, reply: r}, nil) != nil {
		own.free() // the connection has ended
		r.give()
	}
}
