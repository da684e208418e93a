//go:build linux && cgo && rdma

package native

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall
#cgo LDFLAGS: -ldl
#include "shim.h"
#cgo noescape rs_cq_poll
#cgo nocallback rs_cq_poll
#cgo noescape rs_cq_arm
#cgo nocallback rs_cq_arm
#cgo noescape rs_channel_drain
#cgo nocallback rs_channel_drain
#cgo noescape rs_post_send
#cgo nocallback rs_post_send
#cgo noescape rs_post_recv
#cgo nocallback rs_post_recv
*/
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"lunar/internal/rdmadev"
	"lunar/iser/verbs"
)

// Built says whether this binary can use RDMA at all.
const Built = true

// maxDevices is how many devices of a host are used.
const maxDevices = 64

// load opens the libraries, once.
var load = sync.OnceValue(func() error {
	var text [256]C.char
	if C.rs_load(&text[0], C.size_t(len(text))) != 0 {
		return fmt.Errorf("%s (install libibverbs1, librdmacm1 and ibverbs-providers)", C.GoString(&text[0]))
	}
	return nil
})

// Open opens the libraries and all devices of the host. The error says what is
// missing and how to get it: the libraries, kernel modules, a device, the
// permission to use it, or the library's part for this kind of device.
func Open() (verbs.Provider, error) {
	if err := load(); err != nil {
		return nil, err
	}
	if err := rdmadev.Check(); err != nil {
		return nil, err
	}
	var contexts [maxDevices]unsafe.Pointer
	n := C.rs_devices(&contexts[0], maxDevices)
	if n < 0 {
		return nil, failed("rdma_get_devices", n)
	}
	if n == 0 {
		return nil, fmt.Errorf("libibverbs can use none of the RDMA devices of this host (install ibverbs-providers)")
	}
	p := &provider{byContext: map[unsafe.Pointer]*device{}}
	for i := range n {
		if _, err := p.device(contexts[i]); err != nil {
			return nil, err
		}
	}
	p.first = len(p.devices)
	return p, nil
}

// failed is the error of a control call that returned r < 0.
func failed(call string, r C.int) error {
	if r >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", call, syscall.Errno(-r))
}

// provider implements verbs.Provider.
type provider struct {
	mu        sync.Mutex // event channels find devices
	devices   []*device
	byContext map[unsafe.Pointer]*device
	first     int // devices that were there at the start
}

// device finds a device by the library's context, or meets it.
func (p *provider) device(context unsafe.Pointer) (*device, error) {
	if context == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.byContext[context]; d != nil {
		return d, nil
	}
	d := &device{context: context, name: C.GoString(C.rs_name(context))}
	if err := d.query(); err != nil {
		return nil, err
	}
	p.byContext[context] = d
	p.devices = append(p.devices, d)
	return d, nil
}

// Devices implements verbs.Provider.
func (p *provider) Devices() []verbs.Device {
	var all []verbs.Device
	for _, d := range p.devices[:p.first] {
		all = append(all, d)
	}
	return all
}

// Close implements verbs.Provider. The library keeps its devices open until the
// process ends.
func (p *provider) Close() error { return nil }

// device implements verbs.Device.
type device struct {
	context unsafe.Pointer // struct ibv_context
	name    string
	caps    verbs.Caps
}

func (d *device) query() error {
	var c C.rs_caps
	if r := C.rs_query(d.context, &c); r != 0 {
		return failed("ibv_query_device "+d.name, r)
	}
	d.caps = verbs.Caps{
		MaxRegion: uint64(c.max_region), MaxMessage: uint32(c.max_message), MaxQP: int(c.max_qp), MaxWR: int(c.max_wr),
		MaxSendSGE: int(c.max_send_sge), MaxReadSGE: int(c.max_read_sge), MaxCQE: int(c.max_cqe),
		MaxResponder: int(c.max_responder), MaxInitiatorDepth: int(c.max_initiator_depth),
		CompVectors: max(int(c.comp_vectors), 1), MemoryManagement: c.memory_management != 0, IWARP: c.iwarp != 0,
		NodeGUID: uint64(c.node_guid), Firmware: C.GoString(&c.firmware[0]),
	}
	return nil
}

// Name implements verbs.Device.
func (d *device) Name() string { return d.name }

// Caps implements verbs.Device.
func (d *device) Caps() verbs.Caps { return d.caps }

// AsyncFD implements verbs.Device.
func (d *device) AsyncFD() int { return int(C.rs_async_fd(d.context)) }

// NextAsync implements verbs.Device.
func (d *device) NextAsync(e *verbs.AsyncEvent) (bool, error) {
	var c C.rs_async_event
	switch r := C.rs_async_next(d.context, &c); {
	case r == 0:
		*e = verbs.AsyncEvent{Type: verbs.AsyncType(c._type), QP: uint32(c.qp_num), Port: uint8(c.port)}
		return true, nil
	case again(r):
		return false, nil
	default:
		return false, failed("ibv_get_async_event", r)
	}
}

// again reports whether there was only nothing to take.
func again(r C.int) bool {
	return r == -C.int(syscall.EAGAIN) || r == -C.int(syscall.EINTR)
}

// AllocPD implements verbs.Device.
func (d *device) AllocPD() (verbs.PD, error) {
	var pd unsafe.Pointer
	if r := C.rs_pd(d.context, &pd); r != 0 {
		return nil, failed("ibv_alloc_pd", r)
	}
	return &domain{pd}, nil
}

// domain implements verbs.PD.
type domain struct{ pd unsafe.Pointer }

// Register implements verbs.PD.
func (d *domain) Register(mem []byte, access verbs.Access) (verbs.MR, error) {
	var (
		mr         unsafe.Pointer
		lkey, rkey C.uint32_t
	)
	r := C.rs_register(d.pd, unsafe.Pointer(unsafe.SliceData(mem)), C.size_t(len(mem)), C.int(access), &mr, &lkey, &rkey)
	if r != 0 {
		return nil, failed(fmt.Sprintf("ibv_reg_mr of %d bytes", len(mem)), r)
	}
	return &region{mr, uint32(lkey), uint32(rkey)}, nil
}

// Dealloc implements verbs.PD.
func (d *domain) Dealloc() error { return failed("ibv_dealloc_pd", C.rs_pd_dealloc(d.pd)) }

// region implements verbs.MR.
type region struct {
	mr         unsafe.Pointer
	lkey, rkey uint32
}

// LKey implements verbs.MR.
func (r *region) LKey() uint32 { return r.lkey }

// RKey implements verbs.MR.
func (r *region) RKey() uint32 { return r.rkey }

// Deregister implements verbs.MR.
func (r *region) Deregister() error { return failed("ibv_dereg_mr", C.rs_deregister(r.mr)) }
