package wire

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Errors of messages, to be tested with errors.Is.
var (
	// ErrUnreachable: it was not sent, or the other node has no use for it. Nothing has
	// happened, and nothing will.
	ErrUnreachable = errors.New("the node cannot be reached")
	// ErrUnknown: it was sent, and the connection ended before it was answered. The other
	// node has it, or has not.
	ErrUnknown = errors.New("the node has not answered")
)

// Config is what a connection is for.
type Config struct {
	Peer    string        // the other node
	Made    bool          // by this node: it sends messages, and the other one answers them
	Beats   bool          // and no messages
	Silence time.Duration // after which the connection has ended
	Every   time.Duration // how often a beat is sent over it when nothing else is; 0: never by itself
	Queue   int64         // bytes that may wait to be sent; one message may in any case
	Memory  *Memory       // that messages of the other node take; nil: none come
	Counts  *Counts       // of messages
	// Handle takes a message, unless its kind is not known. See link.Receiver.
	Handle func(kind uint8, body []byte, answer func(...[]byte)) (known bool)
	// Beat hears a beat of a connection of beats, with its number, whose bytes it does not keep. It
	// must not wait.
	Beat func(number uint64, says []byte)
}

// Conn is a connection on which both have said hello. One goroutine reads it, one writes.
type Conn struct {
	net.Conn
	Config

	mu     sync.Mutex
	out    []frame // to be written
	queued int64   // bytes of bodies that are to be written, or being written
	calls  map[uint64]call
	last   uint64 // number
	err    error  // why it has ended
	wake   chan struct{}
	stop   chan struct{} // closed when it ends
	gone   chan struct{} // closed when nothing of it goes on any more
}

// Stopped is closed when the connection ends.
func (c *Conn) Stopped() <-chan struct{} { return c.stop }

// Gone is closed when nothing of it goes on any more.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// frame is one to be written.
type frame struct {
	header
	parts [][]byte
	own   *buffer // which is one more part, and freed when it was written
	reply *reply  // that it is, which is over when it was written or never will be; nil: none
}

// call is one that was not answered yet.
type call struct {
	done func([]byte, error)
	kind uint8
	sent bool // or being sent
}

// mostCalls is how many calls of a connection may be unanswered, and how many frames wait.
const mostCalls = 1 << 14

// ioSize is of buffers for reading and writing.
const ioSize = 64 << 10

// New returns a connection, which begins with Run.
func New(raw net.Conn, c Config) *Conn {
	return &Conn{
		Conn: raw, Config: c, calls: map[uint64]call{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), gone: make(chan struct{}),
	}
}

// ErrClosed ends connections without a fault.
var ErrClosed = errors.New("closed")

// Run returns when the connection has ended, and nothing of it goes on any more, with the reason.
func (c *Conn) Run() error {
	var both sync.WaitGroup
	both.Go(func() { c.End(c.write()) })
	c.End(c.read())
	both.Wait()
	c.abandon()
	close(c.gone)
	return c.err
}

// Abandon ends one that was not Run.
func (c *Conn) Abandon() {
	c.End(ErrClosed)
	close(c.gone)
}

// End ends it. The first reason is the one that counts.
func (c *Conn) End(why error) {
	c.mu.Lock()
	over := c.err != nil
	if !over {
		c.err = why
	}
	c.mu.Unlock()
	if !over {
		close(c.stop)
		HangUp(c.Conn)
	}
}

// HangUp closes a connection at once. TLS would say goodbye first, for seconds if nobody listens.
func HangUp(c net.Conn) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	c.Close()
}

// abandon ends the calls that were not answered, and frees what was not written.
func (c *Conn) abandon() {
	c.mu.Lock()
	out, calls := c.out, c.calls
	c.out, c.calls = nil, nil
	c.mu.Unlock()
	for i := range out {
		out[i].release()
	}
	for _, a := range calls {
		n := c.Counts.of(a.kind)
		n.Open.Add(-1)
		if a.sent {
			n.Unknown.Add(1)
			a.done(nil, fmt.Errorf("node %s: %w: %w", c.Peer, ErrUnknown, c.err))
		} else {
			a.done(nil, fmt.Errorf("node %s: %w: %w", c.Peer, ErrUnreachable, c.err))
		}
	}
}

func (f *frame) release() {
	f.own.free()
	if f.reply != nil {
		f.reply.give()
	}
}

// put has a frame be written. It fails with ErrUnreachable, and then nothing of it happens.
func (c *Conn) put(f frame, done func([]byte, error)) error {
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
		return fmt.Errorf("node %s: %w: %w", c.Peer, ErrUnreachable, c.err)
	case bounded && c.queued > 0 && c.queued+int64(n) > c.Queue || bounded && max(len(c.calls), len(c.out)) >= mostCalls:
		return fmt.Errorf("node %s: %w: %d bytes wait to be sent, and %d calls to be answered", c.Peer, ErrUnreachable, c.queued, len(c.calls))
	}
	if done != nil {
		c.last++
		f.number = c.last
		c.calls[c.last] = call{done: done, kind: f.kind}
		n := c.Counts.of(f.kind)
		n.Sent.Add(1)
		n.Open.Add(1)
	}
	c.queued += int64(n)
	c.out = append(c.out, f)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// Send sends a message without an answer, of which it makes a copy. It fails with
// ErrUnreachable.
func (c *Conn) Send(kind uint8, body [][]byte) error {
	return c.send(header{sort: oneWay, kind: kind}, body)
}

// SendBeat sends a beat.
func (c *Conn) SendBeat(number uint64, says []byte) error {
	return c.send(header{sort: beat, number: number}, [][]byte{says})
}

func (c *Conn) send(h header, body [][]byte) error {
	own := copied(body)
	err := c.put(frame{header: h, own: own}, nil)
	if err != nil {
		own.free()
	}
	return err
}

// Call sends a message and has done hear of the answer, or of ErrUnknown or ErrUnreachable, once,
// unless an error is returned, which is ErrUnreachable. The parts of the body must not change
// until then.
func (c *Conn) Call(kind uint8, room int, body [][]byte, done func(answer []byte, err error)) error {
	return c.put(frame{header: header{sort: request, kind: kind, room: uint32(room)}, parts: body}, done)
}

// Load is how many calls are not answered yet, and how many bytes wait to be sent.
func (c *Conn) Load() (calls int, queued int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls), c.queued
}

// take returns what is to be written next, in place of what has been.
func (c *Conn) take(was []frame) []frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range was {
		c.queued -= int64(was[i].length)
	}
	clear(was)
	next := c.out
	c.out = was[:0]
	for i := range next {
		if a, there := c.calls[next[i].number]; there && next[i].sort == request {
			a.sent = true
			c.calls[next[i].number] = a
		}
	}
	return next
}

func (c *Conn) write() error {
	w := bufio.NewWriterSize(c.Conn, ioSize)
	var batch []frame
	var tick <-chan time.Time
	if c.Every > 0 {
		t := time.NewTicker(c.Every)
		defer t.Stop()
		tick = t.C
	}
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
		case <-tick:
			_ = c.SendBeat(0, nil) // or it has ended
		case <-c.stop:
			return ErrClosed
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
