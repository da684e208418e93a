package iser

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target/bottleneck"
)

// device is an RDMA device in use.
type device struct {
	verbs  verbs.Device
	name   string
	log    *slog.Logger
	memory *memory
	links  *bottleneck.Links // that its governed connections share
	gone   bool              // of the control goroutine: it is removed from the machine, or has failed for good

	mu struct {
		sync.Mutex
		closed bool
		groups map[*evloop.Loop]*pollGroup
	}
}

// openDevice registers the server's memory with a device.
func openDevice(d verbs.Device, regions []Region, log *slog.Logger) (*device, error) {
	caps := d.Caps()
	if caps.MaxMessage < leastMessage || caps.MaxInitiatorDepth < 1 {
		return nil, fmt.Errorf("RDMA device %s: found messages of %d bytes and %d outstanding RDMA reads at most, expected %d and 1",
			d.Name(), caps.MaxMessage, caps.MaxInitiatorDepth, leastMessage)
	}
	m, err := openMemory(d, regions)
	if err != nil {
		return nil, err
	}
	dev := &device{verbs: d, name: d.Name(), log: log, memory: m}
	dev.mu.groups = map[*evloop.Loop]*pollGroup{}
	return dev, nil
}

// leastMessage is what one RDMA operation must be able to move, in bytes.
const leastMessage = 1 << 20

// pollGroup returns the device's poll group on an event thread, which it makes at the
// first use.
func (d *device) pollGroup(loop *evloop.Loop) (*pollGroup, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.mu.groups[loop]; s != nil {
		return s, nil
	}
	var s *pollGroup
	err := onLoop(loop, func() (err error) {
		s, err = newPollGroup(d, loop)
		return err
	})
	if err == nil {
		d.mu.groups[loop] = s
	}
	return s, err
}

// load is how many connections the device has on an event thread.
func (d *device) load(loop *evloop.Loop) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.mu.groups[loop]; s != nil {
		return int(s.count.live.Load())
	}
	return 0
}

// close frees everything on the device, once; no connection is left.
func (d *device) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return nil
	}
	d.mu.closed = true
	var errs []error
	for loop, s := range d.mu.groups {
		errs = append(errs, onLoop(loop, s.close))
	}
	clear(d.mu.groups)
	errs = append(errs, d.memory.close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("RDMA device %s: %w", d.name, err)
	}
	return nil
}

// stats sums up what was done with the device.
func (d *device) stats() Stats {
	s := Stats{Device: d.name, Registered: d.memory.bytes.Load()}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, st := range d.mu.groups {
		st.count.addTo(&s)
	}
	return s
}

// onLoop runs f on an event thread and waits for it.
func onLoop(loop *evloop.Loop, f func() error) error {
	done := make(chan error, 1)
	loop.Post(evloop.Func(func() { done <- f() }))
	return <-done
}
