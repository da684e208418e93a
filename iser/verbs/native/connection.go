//go:build linux && cgo && rdma

package native

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"lunar/iser/verbs"
)

// OpenEvents implements verbs.Provider.
func (p *provider) OpenEvents() (verbs.EventChannel, error) {
	var (
		channel unsafe.Pointer
		fd      C.int
	)
	if r := C.rs_events(&channel, &fd); r != 0 {
		return nil, failed("rdma_create_event_channel", r)
	}
	return &eventChannel{provider: p, channel: channel, fd: int(fd), ids: map[unsafe.Pointer]*connectionID{}}, nil
}

// eventChannel implements verbs.EventChannel.
type eventChannel struct {
	provider *provider
	channel  unsafe.Pointer
	fd       int
	ids      map[unsafe.Pointer]*connectionID
}

// FD implements verbs.EventChannel.
func (e *eventChannel) FD() int { return e.fd }

// Next implements verbs.EventChannel.
func (e *eventChannel) Next(out *verbs.Event) (bool, error) {
	var c C.rs_event
	if r := C.rs_events_next(e.channel, &c); r != 0 {
		if again(r) {
			return false, nil
		}
		return false, failed("rdma_get_cm_event", r)
	}
	id, err := e.find(&c)
	if err != nil {
		return false, err
	}
	*out = verbs.Event{
		Type: verbs.EventType(c._type), Status: int32(c.status), ID: id,
		InitiatorDepth: uint8(c.initiator_depth), Responder: uint8(c.responder), RNRRetry: uint8(c.rnr_retry),
		PrivateLen: uint8(c.private_len), Local: addrPort(&c.local), Peer: addrPort(&c.peer),
	}
	copy(out.Private[:], unsafe.Slice((*byte)(unsafe.Pointer(&c.private_data)), len(c.private_data)))
	out.Device = id.Device()
	if l := e.ids[c.listener]; l != nil && out.Type == verbs.EventConnectRequest {
		out.Listener = l
	}
	return true, nil
}

// find returns the id of an event, which a connection request makes.
func (e *eventChannel) find(c *C.rs_event) (*connectionID, error) {
	d, err := e.provider.device(c.verbs)
	if err != nil {
		return nil, err
	}
	id := e.ids[c.id]
	if id == nil {
		id = e.add(c.id, addrPort(&c.local), addrPort(&c.peer))
	}
	id.device = d
	return id, nil
}

func (e *eventChannel) add(id unsafe.Pointer, local, peer netip.AddrPort) *connectionID {
	c := &connectionID{events: e, id: id, local: local, peer: peer}
	e.ids[id] = c
	return c
}

// Listen implements verbs.EventChannel.
func (e *eventChannel) Listen(addr netip.AddrPort, backlog int) (verbs.ID, error) {
	var (
		id    unsafe.Pointer
		local [28]C.uint8_t
		v6    C.int
	)
	if addr.Addr().Is6() {
		v6 = 1
	}
	to := sockaddr(addr)
	if r := C.rs_listen(e.channel, unsafe.Pointer(&to), v6, C.int(backlog), &id, &local[0]); r != 0 {
		return nil, failed(fmt.Sprintf("rdma_listen %s", addr), r)
	}
	return e.add(id, addrPort(&local), netip.AddrPort{}), nil
}

// Resolve implements verbs.EventChannel.
func (e *eventChannel) Resolve(addr netip.AddrPort, timeout time.Duration) (verbs.ID, error) {
	var (
		id, context unsafe.Pointer
		local       [28]C.uint8_t
	)
	to := sockaddr(addr)
	if r := C.rs_resolve(e.channel, unsafe.Pointer(&to), C.int(timeout.Milliseconds()), &id, &context, &local[0]); r != 0 {
		return nil, failed(fmt.Sprintf("rdma_resolve_addr %s", addr), r)
	}
	c := e.add(id, addrPort(&local), addr)
	d, err := e.provider.device(context)
	if err != nil {
		_ = c.Destroy()
		return nil, err
	}
	c.device = d
	return c, nil
}

// Close implements verbs.EventChannel.
func (e *eventChannel) Close() error {
	if len(e.ids) > 0 {
		return fmt.Errorf("rdma_destroy_event_channel: %d ids are left: %w", len(e.ids), syscall.EBUSY)
	}
	C.rs_events_destroy(e.channel)
	return nil
}

// connectionID implements verbs.ID.
type connectionID struct {
	events      *eventChannel
	id          unsafe.Pointer // struct rdma_cm_id
	device      *device
	local, peer netip.AddrPort
}

// Device implements verbs.ID.
func (c *connectionID) Device() verbs.Device {
	if c.device == nil {
		return nil
	}
	return c.device
}

// LocalAddr implements verbs.ID.
func (c *connectionID) LocalAddr() netip.AddrPort { return c.local }

// PeerAddr implements verbs.ID.
func (c *connectionID) PeerAddr() netip.AddrPort { return c.peer }

// with calls f with the parameters as C has them, while Go keeps the private
// data where it is.
func with(p verbs.ConnParam, f func(*C.rs_param) C.int) C.int {
	if len(p.Private) > verbs.MaxPrivate {
		return -C.int(syscall.EINVAL)
	}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	c := &C.rs_param{
		private_len: C.uint8_t(len(p.Private)), responder: C.uint8_t(p.Responder),
		initiator_depth: C.uint8_t(p.InitiatorDepth), rnr_retry: C.uint8_t(p.RNRRetry), retry: C.uint8_t(p.Retry),
	}
	if len(p.Private) > 0 {
		pinned.Pin(&p.Private[0])
		c.private_data = (*C.uint8_t)(&p.Private[0])
	}
	return f(c)
}

// Accept implements verbs.ID.
func (c *connectionID) Accept(p verbs.ConnParam) error {
	p.Retry = 7 // of no meaning to the kernel, but copied
	return failed("rdma_accept", with(p, func(param *C.rs_param) C.int { return C.rs_accept(c.id, param) }))
}

// Connect implements verbs.ID.
func (c *connectionID) Connect(p verbs.ConnParam) error {
	return failed("rdma_connect", with(p, func(param *C.rs_param) C.int { return C.rs_connect(c.id, param) }))
}

// Reject implements verbs.ID.
func (c *connectionID) Reject(private []byte) error {
	if len(private) > verbs.MaxPrivate {
		return fmt.Errorf("rdma_reject: %w", syscall.EINVAL)
	}
	return failed("rdma_reject", C.rs_reject(c.id, (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(private))), C.int(len(private))))
}

// Notify implements verbs.ID.
func (c *connectionID) Notify() error { return failed("rdma_notify", C.rs_notify(c.id)) }

// Disconnect implements verbs.ID.
func (c *connectionID) Disconnect() error { return failed("rdma_disconnect", C.rs_disconnect(c.id)) }

// Destroy implements verbs.ID.
func (c *connectionID) Destroy() error {
	if r := C.rs_id_destroy(c.id); r != 0 {
		return failed("rdma_destroy_id", r)
	}
	delete(c.events.ids, c.id)
	return nil
}

// sockaddr is an address as the kernel has it.
func sockaddr(a netip.AddrPort) (to [28]byte) {
	binary.BigEndian.PutUint16(to[2:], a.Port())
	if a.Addr().Unmap().Is4() {
		binary.NativeEndian.PutUint16(to[:], syscall.AF_INET)
		ip := a.Addr().Unmap().As4()
		copy(to[4:], ip[:])
		return to
	}
	binary.NativeEndian.PutUint16(to[:], syscall.AF_INET6)
	ip := a.Addr().As16()
	copy(to[8:], ip[:])
	return to
}

// addrPort is the reverse; the zero value for what is no address.
func addrPort(c *[28]C.uint8_t) netip.AddrPort {
	from := unsafe.Slice((*byte)(unsafe.Pointer(c)), len(c))
	port := binary.BigEndian.Uint16(from[2:])
	switch binary.NativeEndian.Uint16(from) {
	case syscall.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(from[4:8])), port)
	case syscall.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(from[8:24])), port)
	}
	return netip.AddrPort{}
}
