package fake

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// DeviceOptions describe a device of a host.
type DeviceOptions struct {
	Name string     // such as "rxe0"
	Addr netip.Addr // of its network device
	Caps verbs.Caps // the zero value is DefaultCaps
	// Rate is how many bytes a second its RDMA WRITEs, and its RDMA READs, bring to their end,
	// those of all QPs together, in real time; 0: any. Its QPs take turns at random. Not for
	// a Manual fabric.
	Rate int64
}

// DefaultCaps are those of Soft-RoCE in Linux 6.1.
func DefaultCaps() verbs.Caps {
	return verbs.Caps{
		MaxRegion: 1<<64 - 1, MaxMessage: 8 << 20, MaxQP: 1 << 20, MaxWR: 1 << 20,
		MaxSendSGE: 32, MaxReadSGE: 32, MaxCQE: 32767, MaxResponder: 128, MaxInitiatorDepth: 128,
		CompVectors: 2, MemoryManagement: true, Firmware: "fake",
	}
}

// Host is a machine on the fabric.
type Host struct {
	fabric  *Fabric
	name    string
	kernel  bool
	devices []*Device
}

// Host adds a machine. On a kernel's host keys are those of fast registration,
// which a peer may invalidate; on others that kills the QP, as it does with
// memory that a process registered.
func (f *Fabric) Host(name string, kernel bool, devices ...DeviceOptions) *Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &Host{fabric: f, name: name, kernel: kernel}
	for _, o := range devices {
		if o.Caps == (verbs.Caps{}) {
			o.Caps = DefaultCaps()
		}
		d := &Device{host: h, options: o, fd: eventfd(), regions: map[uint32]*region{}}
		h.devices = append(h.devices, d)
		f.devices = append(f.devices, d)
	}
	return h
}

// Devices implements verbs.Provider.
func (h *Host) Devices() []verbs.Device {
	var all []verbs.Device
	for _, d := range h.devices {
		all = append(all, d)
	}
	return all
}

// Device returns the host's i-th device.
func (h *Host) Device(i int) *Device { return h.devices[i] }

// Close implements verbs.Provider.
func (h *Host) Close() error { return nil }

// Device is a device of a host.
type Device struct {
	host    *Host
	options DeviceOptions
	fd      int
	count   [8]byte // of fd
	async   []verbs.AsyncEvent
	regions map[uint32]*region // by key, which serves as lkey and rkey
	nextKey uint32
	counts  Counters
	down    bool // the cable is cut
	removed bool
	held    bool    // RDMA READs get no answer
	links   [2]link // what Options.Rate bounds: RDMA WRITEs and READs
}

// Counters are what a device was asked to do.
type Counters struct {
	SendPosts, Sends, Writes, Reads uint64 // doorbells of send queues, entries by operation
	Inlined                         uint64 // bytes of data that were copied during a post
	RecvPosts, Recvs                uint64 // doorbells of receive queues, receives
	Polls, Completions              uint64
	Arms, Events                    uint64 // of CQs; events of their channels
	NotReady                        uint64 // messages that found no receive (RNR)
}

// Counters returns what the device was asked to do so far.
func (d *Device) Counters() Counters {
	d.host.fabric.mu.Lock()
	defer d.host.fabric.mu.Unlock()
	return d.counts
}

// Name implements verbs.Device.
func (d *Device) Name() string { return d.options.Name }

// Caps implements verbs.Device.
func (d *Device) Caps() verbs.Caps { return d.options.Caps }

// AsyncFD implements verbs.Device.
func (d *Device) AsyncFD() int { return d.fd }

// NextAsync implements verbs.Device.
func (d *Device) NextAsync(e *verbs.AsyncEvent) (bool, error) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(d.async) == 0 {
		clearFD(d.fd, &d.count)
		return false, nil
	}
	*e = d.async[0]
	d.async = d.async[1:]
	return true, nil
}

func (d *Device) tell(t verbs.AsyncType, qp uint32) {
	d.async = append(d.async, verbs.AsyncEvent{Type: t, QP: qp, Port: 1})
	setFD(d.fd)
}

// Cut takes the cable out: nothing comes or goes any more. Mend puts it back.
func (d *Device) Cut() { d.cable(true, verbs.AsyncPortError) }

// Mend undoes Cut.
func (d *Device) Mend() { d.cable(false, verbs.AsyncPortActive) }

func (d *Device) cable(down bool, event verbs.AsyncType) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	d.down = down
	d.tell(event, 0)
	f.wake.Broadcast()
}

// Objects is how many objects of the device exist.
func (d *Device) Objects() (n int) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	for object := range f.objects {
		switch o := object.(type) {
		case *domain:
			n += count(o.device == d)
		case *region:
			n += count(o.pd.device == d)
		case *queue:
			n += count(o.device == d)
		case *channel:
			n += count(o.device == d)
		case *qp:
			n += count(o.device == d)
		case *id:
			n += count(o.device == d)
		}
	}
	return n
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Hold has RDMA READs of the device wait for their data as long as hold is set.
func (d *Device) Hold(hold bool) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	d.held = hold
	f.wake.Broadcast()
}

// Remove takes the device out of the host: every QP fails, and every id of the
// device gets EventDeviceRemoval.
func (d *Device) Remove() {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	d.removed, d.down = true, true
	d.tell(verbs.AsyncDeviceFatal, 0)
	for _, q := range f.qps {
		if q.device == d {
			q.fail()
		}
	}
	for object := range f.objects {
		if c, ok := object.(*id); ok && c.device == d {
			c.event(verbs.Event{Type: verbs.EventDeviceRemoval})
		}
	}
	f.wake.Broadcast()
}

// Event tells all connections of the device of an event that has no cause here, as a
// connection manager may at any time.
func (d *Device) Event(t verbs.EventType) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	for object := range f.objects {
		if c, ok := object.(*id); ok && c.device == d && c.requested {
			c.event(verbs.Event{Type: t})
		}
	}
	f.wake.Broadcast()
}

// Async tells of an event of all queue pairs of the device that has no cause here.
func (d *Device) Async(t verbs.AsyncType) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.qps {
		if q.device == d {
			d.tell(t, q.number)
		}
	}
}

func (d *Device) closeFD() {
	_ = unix.Close(d.fd)
	d.fd = -1
}

// create runs a control call that makes an object of the device.
func (d *Device) create(call, what string, make func() (any, error)) error {
	f := d.host.fabric
	err := f.enter(call)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	if d.removed {
		return fmt.Errorf("%s: %w", call, unix.EIO)
	}
	object, err := make()
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	f.objects[object] = what
	return nil
}

// destroy runs a control call that ends an object; users is what still uses it.
func (f *Fabric) destroy(call string, object any, users int) error {
	err := f.enter(call)
	defer f.mu.Unlock()
	return f.destroyLocked(call, object, users, err)
}

func (f *Fabric) destroyLocked(call string, object any, users int, err error) error {
	what, exists := f.objects[object]
	switch {
	case !exists:
		f.breach("%s of what was destroyed", call)
		return fmt.Errorf("%s: %w", call, unix.EINVAL)
	case err != nil:
		return err
	case users > 0:
		f.breach("%s: the %s is still in use (%d)", call, what, users)
		return fmt.Errorf("%s: %w", call, unix.EBUSY)
	}
	delete(f.objects, object)
	return nil
}

// eventfd makes the descriptor of something that events wait in.
func eventfd() int {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		panic(fmt.Sprintf("eventfd: %v", err))
	}
	return fd
}

// one is what setFD writes.
var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

func setFD(fd int) {
	if _, err := unix.Write(fd, one); err != nil {
		panic(fmt.Sprintf("eventfd: %v", err))
	}
}

// clearFD needs room for the count, which a system call makes escape.
func clearFD(fd int, count *[8]byte) {
	if _, err := unix.Read(fd, count[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		panic(fmt.Sprintf("eventfd: %v", err))
	}
}
