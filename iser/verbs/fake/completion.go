package fake

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

const errInvalid = unix.EINVAL

// channel is a completion channel.
type channel struct {
	device *Device
	fd     int
	count  [8]byte // of fd
	events int     // that wait
	users  int     // CQs
}

// OpenCompletions implements verbs.Device.
func (d *Device) OpenCompletions() (verbs.CompChannel, error) {
	c := &channel{device: d}
	err := d.create("ibv_create_comp_channel", "completion channel", func() (any, error) {
		c.fd = eventfd()
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// FD implements verbs.CompChannel.
func (c *channel) FD() int { return c.fd }

// Drain implements verbs.CompChannel.
func (c *channel) Drain() (int, error) {
	f := c.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	n := c.events
	c.events = 0
	clearFD(c.fd, &c.count)
	return n, nil
}

// Destroy implements verbs.CompChannel.
func (c *channel) Destroy() error {
	if err := c.device.host.fabric.destroy("ibv_destroy_comp_channel", c, c.users); err != nil {
		return err
	}
	return unix.Close(c.fd)
}

// completion is an entry of a CQ.
type completion struct {
	wc   verbs.WC
	qp   *qp
	sent uint64 // entries of the send queue that are done with it; 0: of a receive
}

// queue is a completion queue.
type queue struct {
	device  *Device
	channel *channel
	entries []completion // never longer than its first capacity
	size    int
	users   int
	armed   bool
	broken  bool // it has overflowed
}

// CreateCQ implements verbs.Device.
func (d *Device) CreateCQ(cqe int, ch verbs.CompChannel, vector int) (verbs.CQ, error) {
	c := &queue{device: d, size: cqe, channel: ch.(*channel)}
	err := d.create("ibv_create_cq", "completion queue", func() (any, error) {
		if cqe < 1 || cqe > d.options.Caps.MaxCQE || vector < 0 || vector >= d.options.Caps.CompVectors || c.channel.device != d {
			return nil, errInvalid
		}
		c.entries = make([]completion, 0, cqe)
		c.channel.users++
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Size implements verbs.CQ.
func (c *queue) Size() int { return c.size }

// Arm implements verbs.CQ.
func (c *queue) Arm() error {
	f := c.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	c.device.counts.Arms++
	c.armed = true
	return nil
}

// Poll implements verbs.CQ.
func (c *queue) Poll(out []verbs.WC) (int, error) {
	n, err := c.poll(out)
	if n == 0 {
		runtime.Gosched() // who spins must not keep the fabric's goroutine from its lock
	}
	return n, err
}

func (c *queue) poll(out []verbs.WC) (int, error) {
	f := c.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	c.device.counts.Polls++
	if c.broken {
		return 0, unix.EIO
	}
	n := min(len(out), len(c.entries))
	for i, e := range c.entries[:n] {
		out[i] = e.wc
		e.qp.polled(e.sent)
	}
	c.entries = slices.Delete(c.entries, 0, n)
	c.device.counts.Completions += uint64(n)
	return n, nil
}

// Destroy implements verbs.CQ.
func (c *queue) Destroy() error {
	f := c.device.host.fabric
	err := f.enter("ibv_destroy_cq")
	defer f.mu.Unlock()
	if err := f.destroyLocked("ibv_destroy_cq", c, c.users, err); err != nil {
		return err
	}
	if c.channel.users--; c.channel.users == 0 && c.channel.events > 0 {
		f.breach("%s: a CQ is destroyed while %d events of its channel wait: it would wait for ever", c.device.host.name, c.channel.events)
	}
	return nil
}

// add puts a completion into the queue and notifies, once, who armed it.
func (c *queue) add(e completion) {
	if c.broken {
		return
	}
	if len(c.entries) == c.size {
		c.overflow()
		return
	}
	c.entries = append(c.entries, e)
	if c.armed {
		c.armed = false
		c.channel.events++
		c.device.counts.Events++
		setFD(c.channel.fd)
	}
}

func (c *queue) overflow() {
	f := c.device.host.fabric
	f.breach("%s: a CQ of %d entries overflowed", c.device.host.name, c.size)
	c.broken = true
	c.device.tell(verbs.AsyncCQError, 0)
	for _, q := range f.qps {
		if q.cq == c {
			q.fail()
		}
	}
}

// forget drops the completions of a QP that is destroyed.
func (c *queue) forget(q *qp) {
	c.entries = slices.DeleteFunc(c.entries, func(e completion) bool { return e.qp == q })
}
