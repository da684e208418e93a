package rdma

import (
	"errors"
	"fmt"

	"lunar/iser/verbs"
)

// mostCompletions are the entries of a card's completion queue, as far as the device has so
// many.
const mostCompletions = 4096

// card is a device with what all connections on it share. It is the engine's.
type card struct {
	device  verbs.Device
	domain  verbs.PD
	channel verbs.CompChannel
	queue   verbs.CQ
	wires   map[uint32]*wire // by number of their queue pairs
	users   int              // wires, and memory that is registered
	posts   int              // that all wires may have posted
	batch   [64]verbs.WC
}

// card returns that of a device, which is made at its first use.
func (e *engine) card(d verbs.Device) (*card, error) {
	if c := e.cards[d]; c != nil {
		return c, nil
	}
	c := &card{device: d, wires: map[uint32]*wire{}}
	var err error
	if c.domain, err = d.AllocPD(); err == nil {
		c.channel, err = d.OpenCompletions()
	}
	if err == nil {
		c.queue, err = d.CreateCQ(min(mostCompletions, d.Caps().MaxCQE), c.channel, 0)
	}
	if err == nil {
		err = c.queue.Arm()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("RDMA device %s: %w", d.Name(), err), c.close())
	}
	e.cards[d] = c
	return c, nil
}

func (c *card) close() (err error) {
	if c.queue != nil {
		_, _ = c.channel.Drain() // else its end would wait for events
		err = c.queue.Destroy()
	}
	if c.channel != nil {
		err = errors.Join(err, c.channel.Destroy())
	}
	if c.domain != nil {
		err = errors.Join(err, c.domain.Dealloc())
	}
	return err
}

// register lets the device use memory, until the region is given back by release.
func (c *card) register(mem []byte, access verbs.Access) (verbs.MR, error) {
	r, err := c.domain.Register(mem, access)
	if err == nil {
		c.users++
	}
	return r, err
}

func (c *card) release(r verbs.MR) error {
	c.users--
	return r.Deregister()
}

// poll takes all completions, and has the next one wake the engine.
func (c *card) poll() {
	_, err := c.channel.Drain()
	if err == nil {
		err = c.take()
	}
	if err == nil {
		err = c.queue.Arm()
	}
	if err == nil {
		err = c.take() // what came before it was armed
	}
	if err != nil {
		for _, w := range c.wires {
			w.end(fmt.Errorf("RDMA device %s: %w", c.device.Name(), err))
		}
	}
}

func (c *card) take() error {
	for {
		n, err := c.queue.Poll(c.batch[:])
		if err != nil || n == 0 {
			return err
		}
		for i := range c.batch[:n] {
			if w := c.wires[c.batch[i].QP]; w != nil {
				w.completed(&c.batch[i])
			}
		}
	}
}
