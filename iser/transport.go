package iser

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target"
	"lunar/target/bottleneck"
)

// Config says what a Transport is made of.
type Config struct {
	Provider   verbs.Provider // the Transport closes it
	Logger     *slog.Logger
	Regions    []Region          // all memory that data move from and to
	QueueDepth func() int        // commands of one session at a time; may change
	Immediate  int               // longest immediate data, in bytes, at most MaxImmediate; 0: none
	Invalidate bool              // responses invalidate the initiator's keys, where it agrees
	Links      *bottleneck.Links // that governed connections share with other transports; nil: their own
	// Loops returns the event threads that may serve a connection from remote
	// to the portal group's address local.
	Loops func(tag uint16, local, remote netip.Addr) []*evloop.Loop
}

// MaxImmediate is the longest immediate data, in bytes.
const MaxImmediate = segmentMost

// Transport is iSER on all RDMA devices of this machine.
type Transport struct {
	config  Config
	log     *slog.Logger
	devices []*device
	control *control
	links   bottleneck.Links // if Config has none
}

// ErrNoDevice says that there is nothing to serve iSER on.
var ErrNoDevice = errors.New("this machine has no RDMA device")

// errIWARP refuses what would lay the memory open: an RDMA Read over iWARP is answered by a
// write of the peer, to a region that it may write to whenever it likes, whose STag the
// request names (RFC 5040 section 5.2). The regions here are all buffers of the process.
var errIWARP = errors.New("it is an iWARP device: its peers could write to all buffers of this server; iSER is served over InfiniBand and RoCE only")

// ofIWARP reports a device that is not used.
func ofIWARP(d verbs.Device) bool { return d.Caps().IWARP }

// usable are the devices that iSER is served on.
func usable(found []verbs.Device, log *slog.Logger) ([]verbs.Device, error) {
	if len(found) == 0 {
		return nil, ErrNoDevice
	}
	var why error
	for _, d := range found {
		if ofIWARP(d) {
			why = fmt.Errorf("RDMA device %s: %w", d.Name(), errIWARP)
			log.Warn("RDMA device refused", "device", d.Name(), "reason", errIWARP)
		}
	}
	found = slices.DeleteFunc(slices.Clone(found), ofIWARP)
	if len(found) > 0 {
		why = nil
	}
	return found, why
}

// Open registers the memory with all devices and starts the control goroutine.
func Open(config Config) (*Transport, error) {
	t := &Transport{config: config, log: config.Logger}
	if t.log == nil {
		t.log = slog.Default()
	}
	found, err := usable(config.Provider.Devices(), t.log)
	if err != nil {
		return nil, errors.Join(err, config.Provider.Close())
	}
	err = checkLocked(len(found), config.Regions)
	for i := 0; i < len(found) && err == nil; i++ {
		var d *device
		if d, err = openDevice(found[i], config.Regions, t.log); err == nil {
			d.links = cmp.Or(config.Links, &t.links)
			t.devices = append(t.devices, d)
		}
	}
	if err == nil {
		t.control, err = openControl(t)
	}
	if err != nil {
		return nil, errors.Join(err, t.closeDevices(), config.Provider.Close())
	}
	for _, d := range t.devices {
		t.log.Info("RDMA device ready", "device", d.name, "firmware", d.verbs.Caps().Firmware, "registered", d.memory.bytes.Load())
	}
	return t, nil
}

// device returns the one in use that a verbs.Device is, or nil.
func (t *Transport) device(d verbs.Device) *device {
	i := slices.IndexFunc(t.devices, func(o *device) bool { return o.verbs == d })
	if i < 0 {
		return nil
	}
	return t.devices[i]
}

// Portal returns one that listens on an address, for the portal group with a tag.
func (t *Transport) Portal(addr netip.AddrPort, tag uint16) target.Portal {
	return &portal{control: t.control, name: addr.String(), addr: addr, tag: tag}
}

// Stats returns what was done with each device.
func (t *Transport) Stats() (all []Stats) {
	for _, d := range t.devices {
		all = append(all, d.stats())
	}
	return all
}

// Close ends the transport. All portals are closed, and all sessions have ended;
// the event threads still run.
func (t *Transport) Close() error {
	return errors.Join(t.control.close(), t.closeDevices(), t.config.Provider.Close())
}

func (t *Transport) closeDevices() error {
	var errs []error
	for _, d := range t.devices {
		errs = append(errs, d.close())
	}
	t.devices = nil
	return errors.Join(errs...)
}

// portal is one listening address: a target.Portal.
type portal struct {
	control *control
	name    string // as configured
	addr    netip.AddrPort
	tag     uint16
	id      verbs.ID                                    // of the control goroutine
	accept  atomic.Pointer[func(target.LoginTransport)] // nil: nobody is accepted
}

// backlog is how many connection requests may wait.
const backlog = 256

// Open implements target.Portal.
func (p *portal) Open() error {
	return p.control.do(func() error {
		id, err := p.control.events.Listen(p.addr, backlog)
		if err != nil {
			return fmt.Errorf("iSER portal %s: %w", p.addr, err)
		}
		p.id, p.addr = id, id.LocalAddr()
		p.control.portals[id] = p
		return nil
	})
}

// Accept implements target.Portal.
func (p *portal) Accept(accept func(target.LoginTransport)) {
	p.accept.Store(&accept)
}

// Name implements target.Portal.
func (p *portal) Name() string { return p.name }

// Assisted implements target.Portal.
func (*portal) Assisted() bool { return true }

// Addr implements target.Portal.
func (p *portal) Addr() netip.AddrPort { return p.addr }

// Close implements target.Portal. It does not wait.
func (p *portal) Close() error {
	p.accept.Store(nil)
	p.control.order(func() {
		if p.id == nil {
			return
		}
		delete(p.control.portals, p.id)
		if err := p.id.Destroy(); err != nil {
			p.control.transport.log.Warn("iSER portal", "portal", p.addr.String(), "error", err)
		}
		p.id = nil
	})
	return nil
}
