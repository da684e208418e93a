package targettest

import (
	"io"
	"os"
	"sync"
	"time"
)

// pipe is one direction of a connection: a bounded queue of bytes between
// goroutines. A side that must not block, the event thread, uses tryWrite and
// tryRead and hears through notify when it is worth trying again.
type pipe struct {
	limit int // bytes that it holds at most

	mu      sync.Mutex
	changed *sync.Cond
	bytes   []byte
	from    int    // bytes before it are taken
	ended   bool   // no more is written
	notify  func() // the event thread's side: called without mu after the other side did something
}

func newPipe(limit int) *pipe {
	p := &pipe{limit: limit}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// hear makes f the notification and calls it once, for what happened before.
func (p *pipe) hear(f func()) {
	p.mu.Lock()
	p.notify = f
	p.mu.Unlock()
	if f != nil {
		f()
	}
}

// tell wakes whoever waits for the pipe; the caller has unlocked it.
func (p *pipe) tell() {
	p.mu.Lock()
	f := p.notify
	p.mu.Unlock()
	p.changed.Broadcast()
	if f != nil {
		f()
	}
}

// tryWrite takes as much of b as there is room for.
func (p *pipe) tryWrite(b []byte) int {
	p.mu.Lock()
	n := 0
	if !p.ended {
		n = p.put(b)
	}
	p.mu.Unlock()
	p.changed.Broadcast()
	return n
}

// tryRead moves up to len(b) bytes to b; ended says that none will follow.
func (p *pipe) tryRead(b []byte) (n int, ended bool) {
	p.mu.Lock()
	n = p.take(b)
	ended = p.ended && p.held() == 0
	p.mu.Unlock()
	p.changed.Broadcast()
	return n, ended
}

func (p *pipe) take(b []byte) int {
	n := copy(b, p.bytes[p.from:])
	p.from += n
	return n
}

// waiting reports whether there is something to read, or the end.
func (p *pipe) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held() > 0 || p.ended
}

// put appends what there is room for. Taken bytes are dropped when they are the
// larger part, so that every byte moves at most once.
func (p *pipe) put(b []byte) int {
	n := min(len(b), p.limit-p.held())
	if p.from > p.held() {
		p.bytes = p.bytes[:copy(p.bytes, p.bytes[p.from:])]
		p.from = 0
	}
	p.bytes = append(p.bytes, b[:n]...)
	return n
}

func (p *pipe) held() int { return len(p.bytes) - p.from }

// end lets readers have what is in the pipe and nothing more.
func (p *pipe) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.tell()
}

// read blocks until there are bytes, the end, or the deadline.
func (p *pipe) read(b []byte, d *deadline) (int, error) {
	p.mu.Lock()
	for p.held() == 0 && !p.ended && !d.passed() {
		p.changed.Wait()
	}
	n, ended := p.take(b), p.ended
	p.mu.Unlock()
	switch {
	case n > 0:
		p.tell()
		return n, nil
	case ended:
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

// write blocks until all of b is in the pipe.
func (p *pipe) write(b []byte, d *deadline) (int, error) {
	done := 0
	for done < len(b) {
		p.mu.Lock()
		for p.held() == p.limit && !p.ended && !d.passed() {
			p.changed.Wait()
		}
		n, ended := 0, p.ended
		if !ended {
			n = p.put(b[done:])
			done += n
		}
		p.mu.Unlock()
		switch {
		case ended:
			return done, io.ErrClosedPipe
		case n == 0:
			return done, os.ErrDeadlineExceeded
		}
		p.tell()
	}
	return done, nil
}

// deadline is a moment at which the waiters of a pipe are to give up. It is
// guarded by the pipe's mu.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set moves the deadline of one side of p.
func (d *deadline) set(p *pipe, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.at = at; !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), p.changed.Broadcast)
	}
}
