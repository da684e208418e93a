package fake

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// eventChannel is a channel of connection manager events.
type eventChannel struct {
	fabric *Fabric
	host   *Host
	fd     int
	count  [8]byte // of fd
	queue  []verbs.Event
	ids    int
}

// OpenEvents implements verbs.Provider.
func (h *Host) OpenEvents() (verbs.EventChannel, error) {
	f := h.fabric
	err := f.enter("rdma_create_event_channel")
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	e := &eventChannel{fabric: f, host: h, fd: eventfd()}
	f.objects[e] = "event channel"
	return e, nil
}

// FD implements verbs.EventChannel.
func (e *eventChannel) FD() int { return e.fd }

// Next implements verbs.EventChannel.
func (e *eventChannel) Next(out *verbs.Event) (bool, error) {
	e.fabric.mu.Lock()
	defer e.fabric.mu.Unlock()
	if len(e.queue) == 0 {
		clearFD(e.fd, &e.count)
		return false, nil
	}
	*out = e.queue[0]
	e.queue = slices.Delete(e.queue, 0, 1)
	return true, nil
}

func (e *eventChannel) add(event verbs.Event) {
	e.queue = append(e.queue, event)
	setFD(e.fd)
}

// forget drops what is queued about an id that is destroyed.
func (e *eventChannel) forget(c *id) {
	e.ids--
	e.queue = slices.DeleteFunc(e.queue, func(event verbs.Event) bool { return event.ID == c })
}

// Listen implements verbs.EventChannel.
func (e *eventChannel) Listen(addr netip.AddrPort, _ int) (verbs.ID, error) {
	f := e.fabric
	err := f.enter("rdma_listen")
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	c := &id{fabric: f, events: e, local: addr}
	if !addr.Addr().IsUnspecified() {
		if c.device = f.deviceOf(addr.Addr()); c.device == nil || c.device.host != e.host {
			return nil, fmt.Errorf("rdma_bind_addr %s: %w", addr, unix.ENODEV)
		}
	}
	if addr.Port() == 0 {
		f.lastPort++
		c.local = netip.AddrPortFrom(addr.Addr(), f.lastPort)
	}
	at := place{e.host, c.local}
	if f.listeners[at] != nil {
		return nil, fmt.Errorf("rdma_bind_addr %s: %w", addr, unix.EADDRINUSE)
	}
	f.listeners[at] = c
	f.objects[c] = "connection id"
	e.ids++
	return c, nil
}

// Close implements verbs.EventChannel.
func (e *eventChannel) Close() error {
	if err := e.fabric.destroy("rdma_destroy_event_channel", e, e.ids); err != nil {
		return err
	}
	return unix.Close(e.fd)
}
