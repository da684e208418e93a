package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"reflect"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/rdmadev"
	"lunar/iser"
	"lunar/iser/verbs/native"
	"lunar/target"
)

// openRDMA gives access to the RDMA devices; tests have others.
var openRDMA = native.Open

// state returns the transport, or why there is none although it was asked for.
func (r *rdma) state() (t *iser.Transport, off string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.transport, r.mu.off
}

// wantsISER reports whether any portal group listens for iSER.
func wantsISER(cfg *conf.Config) bool {
	for _, g := range cfg.PortalGroups {
		if len(g.ListenISER) > 0 {
			return true
		}
	}
	return false
}

// openISER makes all memory that data move through known to the RDMA devices. A
// server that cannot do so serves TCP alone and says why: its volumes are of use to
// others.
func (d *daemon) openISER(cfg *conf.Config, log *slog.Logger) error {
	d.OnStop(func() { d.rdma.stop(log) })
	if !wantsISER(cfg) {
		return nil
	}
	err := d.startISER(cfg, log)
	if err == nil {
		return nil
	}
	d.rdma.turnOff(err)
	log.Error("iSER is off: only TCP is served", "reason", err)
	for _, g := range cfg.PortalGroups {
		if len(g.Listen) > 0 {
			return nil
		}
	}
	return fmt.Errorf("iSER is off, and no portal group listens on TCP: %w", err)
}

// startISER registers the memory, once: with the devices that there are now.
func (d *daemon) startISER(cfg *conf.Config, log *slog.Logger) error {
	r := &d.rdma
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.transport != nil:
		return nil
	case r.mu.stopped:
		return errors.New("the server is stopping")
	}
	provider, err := openRDMA()
	if err == nil {
		r.mu.transport, err = iser.Open(iser.Config{
			Provider: provider, Logger: log, Regions: d.regions(), QueueDepth: d.QueueDepth,
			Immediate: int(cfg.Server.ISER.ImmediateData), Invalidate: cfg.Server.ISER.RemoteInvalidation, Loops: d.LoopsFor,
			Links: &d.links,
		})
	}
	if err == nil {
		r.mu.off = ""
	}
	return err
}

// turnOff notes why there is none.
func (r *rdma) turnOff(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.off = why.Error()
}

// stop gives the devices back; no session is left.
func (r *rdma) stop(log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.stopped = true; r.mu.transport == nil {
		return
	}
	if err := r.mu.transport.Close(); err != nil {
		log.Warn("iSER did not end cleanly", "error", err)
	}
}

// changeISER readies RDMA for a configuration that listens elsewhere than the one
// in force. Unlike a start it fails where that is impossible, and changes nothing
// then. Once it is there it stays, so that a later change finds it.
func (d *daemon) changeISER(old, cfg *conf.Config, log *slog.Logger) error {
	_, off := d.rdma.state()
	listens := func(c *conf.Config) (all [][]conf.ISERPortal) {
		for _, g := range c.PortalGroups {
			if len(g.ListenISER) > 0 {
				all = append(all, g.ListenISER)
			}
		}
		return all
	}
	if !wantsISER(cfg) || off != "" && reflect.DeepEqual(listens(old), listens(cfg)) {
		return nil
	}
	if err := d.startISER(cfg, log); err != nil {
		return fmt.Errorf("iSER: %w", err)
	}
	return nil
}

// regions are the buffers of all event threads and the blocks of the cache, which
// are only sent from.
func (d *daemon) regions() (out []iser.Region) {
	for _, l := range d.Loops() {
		out = append(out, iser.Region{Name: "buffers of " + l.Name(), Mem: l.Pool().Memory(), Into: true})
	}
	if d.Cache != nil {
		for _, mem := range d.Cache.Memory() {
			out = append(out, iser.Region{Name: "the cache", Mem: mem})
		}
	}
	return out
}

// iserPortals are the portals of a group over RDMA, not open yet.
func (d *daemon) iserPortals(g *conf.PortalGroup) (out []target.Portal, err error) {
	transport, _ := d.rdma.state()
	if transport == nil {
		return nil, nil
	}
	for _, p := range g.ListenISER {
		addrs, err := addressesOf(p)
		if err != nil {
			return nil, fmt.Errorf("portal-groups.%s.listen-iser: %w", g.Name, err)
		}
		for _, a := range addrs {
			out = append(out, transport.Portal(a, g.Tag))
		}
	}
	return out, nil
}

// addressesOf resolves a portal that is named by its interface: all addresses of
// that, but for link-local ones, which others cannot reach without a zone.
func addressesOf(p conf.ISERPortal) ([]netip.AddrPort, error) {
	if p.Interface == "" {
		return []netip.AddrPort{p.Addr}, nil
	}
	device, err := rdmadev.ForNetdev(p.Interface)
	if err != nil {
		return nil, fmt.Errorf("%s has no RDMA device: %w", p.Interface, err)
	}
	if rdmadev.IWARP(device) {
		return nil, fmt.Errorf("%s has the RDMA device %s: %w", p.Interface, device, rdmadev.ErrIWARP)
	}
	nic, err := net.InterfaceByName(p.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", p.Interface, err)
	}
	found, err := nic.Addrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", p.Interface, err)
	}
	out := usableAddresses(found, p.Addr.Port())
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no address that others can reach: give it one, or name an address", p.Interface)
	}
	return out, nil
}

func usableAddresses(found []net.Addr, port uint16) (out []netip.AddrPort) {
	for _, a := range found {
		prefix, err := netip.ParsePrefix(a.String())
		if addr := prefix.Addr().Unmap(); err == nil && !addr.IsLinkLocalUnicast() {
			out = append(out, netip.AddrPortFrom(addr, port))
		}
	}
	return out
}

// checkISER says, without taking anything, what stands against iSER on this
// machine.
func checkISER(cfg *conf.Config) (notes []string) {
	if !wantsISER(cfg) {
		return nil
	}
	if !native.Built {
		return []string{"iSER would be off: " + native.ErrNotBuilt.Error()}
	}
	if err := rdmadev.Check(); err != nil {
		return []string{"iSER would be off: " + err.Error()}
	}
	for _, g := range cfg.PortalGroups {
		for _, p := range g.ListenISER {
			if _, err := addressesOf(p); err != nil {
				notes = append(notes, fmt.Sprintf("portal-groups.%s.listen-iser: %v", g.Name, err))
			}
		}
	}
	for _, device := range rdmadev.Devices() {
		if rdmadev.IWARP(device) {
			notes = append(notes, fmt.Sprintf("RDMA device %s would be refused: %v", device, rdmadev.ErrIWARP))
			continue
		}
		notes = append(notes, fmt.Sprintf("iSER on RDMA device %s (NUMA node %d)", device, rdmadev.Node(device)))
	}
	return notes
}

// rdmaStatus is what the control API tells of iSER; nil if nobody asked for it.
func (d *daemon) rdmaStatus() *control.RDMA {
	transport, off := d.rdma.state()
	switch {
	case off != "" && wantsISER(d.config.Load()):
		return &control.RDMA{Off: off, Devices: []control.RDMADevice{}}
	case transport == nil:
		return nil
	}
	out := &control.RDMA{Devices: []control.RDMADevice{}}
	for _, s := range transport.Stats() {
		dev := control.RDMADevice{
			Name: s.Device, Connections: s.Connections, RegisteredBytes: s.Registered,
			Receives: s.Receives, Sends: s.Sends, Writes: s.Writes, Reads: s.Reads, WriteBytes: s.WriteBytes, ReadBytes: s.ReadBytes,
			Posts: s.Posts, Invalidations: s.Invalidates, BouncedBytes: s.Bounced, Polls: s.Polls, Arms: s.Arms, Failures: s.Failures,
			Ports: []control.RDMACounter{},
		}
		counters, err := rdmadev.Counters(s.Device)
		if err != nil {
			continue // a device that has been removed
		}
		for _, c := range counters {
			dev.Ports = append(dev.Ports, control.RDMACounter{Port: c.Port, Name: c.Name, Value: c.Value})
		}
		out.Devices = append(out.Devices, dev)
	}
	return out
}
