package rdma

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// beatInterval is how often a control channel sends something at least, so that a peer that is gone
// is noticed: a queue pair by itself says nothing while nothing is sent.
const beatInterval = 5 * time.Second

// engine is a goroutine that makes and destroys connections, and hears of what the devices
// have done.
type engine struct {
	devices verbs.Provider
	events  verbs.EventChannel
	wake    int // eventfd
	ended   chan struct{}

	wires     map[verbs.ID]*wire // all that follows is the goroutine's
	cards     map[verbs.Device]*card
	listeners map[verbs.ID]bool
	request   func(*verbs.Event) // takes connection requests
	closing   bool               // it ends when no wire is left
	beaten    time.Time

	mu struct {
		sync.Mutex
		orders []func()
		closed bool
	}
}

// start begins with the devices of a provider, which are the engine's then.
func start(p verbs.Provider) (*engine, error) {
	events, err := p.OpenEvents()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), events.Close(), p.Close())
	}
	e := &engine{
		devices: p, events: events, wake: wake, ended: make(chan struct{}), beaten: time.Now(),
		wires: map[verbs.ID]*wire{}, cards: map[verbs.Device]*card{}, listeners: map[verbs.ID]bool{},
	}
	go e.run()
	return e, nil
}

// order has the goroutine run f; false: it has ended.
func (e *engine) order(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closed {
		return false
	}
	e.mu.orders = append(e.mu.orders, f)
	_, err := unix.Write(e.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err == nil || errors.Is(err, unix.EAGAIN) // EAGAIN: it is full of wakes
}

// do runs f on the goroutine and waits for it.
func (e *engine) do(f func() error) error {
	done := make(chan error, 1)
	if !e.order(func() { done <- f() }) {
		return net.ErrClosed
	}
	return <-done
}

// finish ends the goroutine as soon as no wire is left. It does not wait.
func (e *engine) finish() { e.order(e.shut) }

// shut lets nobody in any more.
func (e *engine) shut() {
	e.closing = true
	for id := range e.listeners {
		delete(e.listeners, id)
		_ = id.Destroy() // nothing is left to do about it
	}
}

func (e *engine) run() {
	defer close(e.ended)
	for {
		fds := []unix.PollFd{{Fd: int32(e.wake), Events: unix.POLLIN}, {Fd: int32(e.events.FD()), Events: unix.POLLIN}}
		for _, c := range e.cards {
			fds = append(fds, unix.PollFd{Fd: int32(c.channel.FD()), Events: unix.POLLIN})
		}
		_, err := unix.Poll(fds, int(beatInterval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			e.endAll(fmt.Errorf("poll: %w", err))
		}
		e.takeEvents()
		for _, c := range e.cards {
			c.poll()
		}
		e.takeOrders()
		if now := time.Now(); now.Sub(e.beaten) >= beatInterval {
			e.beaten = now
			e.beat()
		}
		e.sweep()
		if e.closing && len(e.wires) == 0 && e.close() {
			return
		}
	}
}

// close ends it unless there is something to do.
func (e *engine) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.mu.orders) > 0 {
		return false
	}
	e.mu.closed = true
	_ = e.events.Close()
	_ = unix.Close(e.wake)
	_ = e.devices.Close()
	return true
}

func (e *engine) takeOrders() {
	var count [8]byte
	_, _ = unix.Read(e.wake, count[:]) // EAGAIN: nobody has woken it
	for {
		e.mu.Lock()
		orders := e.mu.orders
		e.mu.orders = nil
		e.mu.Unlock()
		if len(orders) == 0 {
			return
		}
		for _, f := range orders {
			f()
		}
	}
}

// beat tells all users that time has passed.
func (e *engine) beat() {
	for _, w := range e.wires {
		w.user.beat()
	}
}

// takeEvents acts on all events of the connection manager that are there.
func (e *engine) takeEvents() {
	for {
		var event verbs.Event
		there, err := e.events.Next(&event)
		if err != nil {
			e.endAll(err)
			return
		}
		if !there {
			return
		}
		e.take(&event)
	}
}

func (e *engine) take(event *verbs.Event) {
	if event.Type == verbs.EventConnectRequest {
		e.request(event)
		return
	}
	w := e.wires[event.ID]
	if w == nil {
		return
	}
	switch event.Type {
	case verbs.EventEstablished:
		w.isUp()
	case verbs.EventDisconnected:
		w.card.poll() // what has arrived before
		w.end(io.EOF)
	case verbs.EventConnectError, verbs.EventUnreachable, verbs.EventRejected, verbs.EventDeviceRemoval:
		w.end(fmt.Errorf("RDMA connection: %v (%d)", event.Type, event.Status))
	}
}

func (e *engine) endAll(why error) {
	for _, w := range e.wires {
		w.end(why)
	}
}

// sweep gives back what nobody uses of devices.
func (e *engine) sweep() {
	for d, c := range e.cards {
		if c.users == 0 {
			delete(e.cards, d)
			_ = c.close() // nothing is left to do about it
		}
	}
}

// resolve finds the way to an address. It may take a while.
func (e *engine) resolve(to netip.AddrPort) (id verbs.ID, err error) {
	id, err = e.events.Resolve(to, resolveTime)
	if err == nil && id.Device() == nil {
		err = errors.Join(errors.New("found no RDMA device on the way there"), id.Destroy())
	}
	return id, err
}

// resolveTime is how long resolve may take.
const resolveTime = 5 * time.Second
