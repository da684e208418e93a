package link

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
)

// conn is a connection on which both have said hello. One goroutine reads it, one writes.
type conn struct {
	net.Conn
	links *Links
	peer  *peer
	from  Peer
	way   int
	made  bool // by this node: it sends messages, and the other one answers them

	mu     sync.Mutex
	out    []frame // to be written
	queued int64   // bytes of bodies that are to be written, or being written
	calls  map[uint64]*call
	last   uint64 // number
	err    error  // why it has ended
	wake   chan struct{}
	stop   chan struct{} // closed when it ends
	gone   chan struct{} // closed when nothing of it goes on any more
}

// frame is one to be written.
type frame struct {
	header
	parts   [][]byte
	own     *buffer // which is one more part, and freed when it was written
	written func()  // called when it was written, or never will be; nil: nothing is
}

// call is one that was not answered yet.
type call struct {
	done func([]byte, error)
	sent bool // or being sent
}

// mostCalls is how many calls of a connection may be unanswered, and how many frames wait.
const mostCalls = 1 << 14

// ioSize is of buffers for reading and writing.
const ioSize = 64 << 10

func newConn(l *Links, p *peer, raw net.Conn, from Peer, way int, made bool) *conn {
	return &conn{
		Conn: raw, links: l, peer: p, from: from, way: way, made: made, calls: map[uint64]*call{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), gone: make(chan struct{}),
	}
}

// errClosed ends connections without a fault.
var errClosed = errors.New("closed")

// run returns when the connection has ended, and nothing of it goes on any more.
func (c *conn) run() error {
	var both sync.WaitGroup
	both.Go(func() { c.end(c.write()) })
	c.end(c.read())
	both.Wait()
	c.abandon()
	close(c.gone)
	return c.err
}

// end ends it. The first reason is the one that counts.
func (c *conn) end(why error) {
	c.mu.Lock()
	over := c.err != nil
	if !over {
		c.err = why
	}
	c.mu.Unlock()
	if !over {
		close(c.stop)
		hangUp(c.Conn)
	}
}

// hangUp closes a connection at once. TLS would say goodbye first, for seconds if nobody listens.
func hangUp(c net.Conn) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	c.Close()
}

// abandon ends the calls that were not answered, and frees what was not written.
func (c *conn) abandon() {
	c.mu.Lock()
	out, calls := c.out, c.calls
	c.out, c.calls = nil, nil
	c.mu.Unlock()
	for i := range out {
		out[i].release()
	}
	for _, a := range calls {
		if a.sent {
			a.done(nil, fmt.Errorf("node %s: %w: %w", c.from.Node, ErrUnknown, c.err))
		} else {
			a.done(nil, fmt.Errorf("node %s: %w: %w", c.from.Node, ErrUnreachable, c.err))
		}
	}
}

func (f *frame) release() {
	f.own.free()
	if f.written != nil {
		f.written()
	}
}

// put has a frame be written. It fails with ErrUnreachable, and then nothing of it happens.
func (c *conn) put(f frame, a *call) error {
	n := sizeOf(f.parts)
	if f.own != nil {
		n += len(f.own.bytes)
	}
	if n > int(limits[f.sort]) {
		return fmt.Errorf("found a message of %d bytes, expected %d at most (%w)", n, limits[f.sort], ErrUnreachable)
	}
	f.length = uint32(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	bounded := f.sort == request || f.sort == oneWay // what else there is answers what was bounded
	switch {
	case c.err != nil:
		return fmt.Errorf("node %s: %w: %w", c.from.Node, ErrUnreachable, c.err)
	case bounded && c.queued > 0 && c.queued+int64(n) > c.links.config.Memory || bounded && max(len(c.calls), len(c.out)) >= mostCalls:
		return fmt.Errorf("node %s: %w: %d bytes wait to be sent, and %d calls to be answered", c.from.Node, ErrUnreachable, c.queued, len(c.calls))
	}
	if a != nil {
		c.last++
		f.number = c.last
		c.calls[c.last] = a
	}
	c.queued += int64(n)
	c.out = append(c.out, f)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (c *conn) send(h header, body [][]byte) error {
	own := copied(body)
	err := c.put(frame{header: h, own: own}, nil)
	if err != nil {
		own.free()
	}
	return err
}

func (c *conn) call(m Message, done func([]byte, error)) error {
	return c.put(frame{header: header{sort: request, kind: m.Kind, room: uint32(m.Room)}, parts: m.Body}, &call{done: done})
}

// take returns what is to be written next, in place of what has been.
func (c *conn) take(was []frame) []frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range was {
		c.queued -= int64(was[i].length)
	}
	clear(was)
	next := c.out
	c.out = was[:0]
	for i := range next {
		if a := c.calls[next[i].number]; a != nil && next[i].sort == request {
			a.sent = true
		}
	}
	return next
}

func (c *conn) write() error {
	w := bufio.NewWriterSize(c.Conn, ioSize)
	var batch []frame
	for {
		if batch = c.take(batch); len(batch) > 0 {
			if err := writeAll(w, batch); err != nil {
				return err
			}
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
		select {
		case <-c.wake:
		case <-c.stop:
			return errClosed
		}
	}
}

// writeAll writes frames, and releases all of them.
func writeAll(w *bufio.Writer, batch []frame) (err error) {
	for i := range batch {
		if err == nil {
			err = batch[i].writeTo(w)
		}
		batch[i].release()
	}
	return err
}

func (f *frame) writeTo(w *bufio.Writer) error {
	var b [headerSize]byte
	f.put(&b)
	_, err := w.Write(b[:])
	for _, p := range f.parts {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	if f.own != nil && err == nil {
		_, err = w.Write(f.own.bytes)
	}
	return err
}
