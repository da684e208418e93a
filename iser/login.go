package iser

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
)

const (
	// loginSlots is how many messages of an initiator in its login are received:
	// there is one at a time, and the next may come before it has been looked at.
	loginSlots = 2
	// loginSends is how many slots there are for what is sent meanwhile.
	loginSends = 2
)

var errLoginEnded = errors.New("the login has ended")

// entrance is the login phase of a connection: its target.AssistedTransport. It is
// used by the login's goroutine, which reaches the connection by posting to its
// event thread.
type entrance struct {
	conn      *conn
	immediate int // Config.Immediate
	deadline  time.Time
	request   pdu.BHS
	text      [segmentMost]byte
}

// Loop implements target.AssistedTransport.
func (e *entrance) Loop() *evloop.Loop { return e.conn.loop }

// Local implements target.LoginTransport.
func (e *entrance) Local() netip.AddrPort { return e.conn.local }

// Remote implements target.LoginTransport.
func (e *entrance) Remote() netip.AddrPort { return e.conn.remote }

// SetDeadline implements target.LoginTransport.
func (e *entrance) SetDeadline(at time.Time) error {
	e.deadline = at
	return nil
}

// Close implements target.LoginTransport: what was sent still arrives.
func (e *entrance) Close() error {
	e.conn.loop.Post(evloop.Func(func() { e.conn.Close(errLoginEnded, true) }))
	return nil
}

// Receive implements target.LoginTransport.
func (e *entrance) Receive() (*pdu.BHS, []byte, error) {
	m, err := e.await()
	if err != nil {
		return nil, nil, fmt.Errorf("waiting for a login request: %w", err)
	}
	c := e.conn
	mem, _ := c.rx.slot(m.slot)
	bhs, ahs, data, err := parse(mem[messageAt:][:min(m.length, messageMost)])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", errProtocol, err)
	case bhs.Opcode() != pdu.OpLoginRequest || len(ahs) > 0:
		return nil, nil, fmt.Errorf("%w: %s with %d bytes of AHS in login phase, expected a login request", errProtocol, bhs.Opcode(), len(ahs))
	}
	e.request = *bhs
	text := e.text[:copy(e.text[:], data)]
	c.loop.Post(evloop.Func(func() {
		c.rx.again = append(c.rx.again, m.slot)
		c.schedule()
	}))
	return &e.request, text, nil
}

// await waits for a message.
func (e *entrance) await() (message, error) {
	var late <-chan time.Time
	if !e.deadline.IsZero() {
		timer := time.NewTimer(time.Until(e.deadline))
		defer timer.Stop()
		late = timer.C
	}
	for {
		m, ok, err := e.conn.login.next()
		if ok || err != nil {
			return m, err
		}
		select {
		case <-e.conn.login.came:
		case <-late:
			return message{}, os.ErrDeadlineExceeded
		}
	}
}

// Send implements target.LoginTransport.
func (e *entrance) Send(bhs *pdu.BHS, text []byte) error {
	header := *bhs
	e.conn.loop.Post(evloop.Func(func() { e.conn.SendControl(&header, text, nil) }))
	return nil
}

// Offer implements target.AssistedTransport.
func (e *entrance) Offer(o login.Offer) login.Offer {
	return login.AssistedOffer(o, uint32(e.immediate))
}

// Prepare implements target.AssistedTransport: the receives of full feature phase
// are posted before the initiator can know that it has begun.
func (e *entrance) Prepare(r *login.Result, depth int) error {
	c := e.conn
	if r.SessionType == login.Discovery {
		depth = min(depth, discoveryWindow)
	}
	depth = min(depth, c.window)
	n := depth + slack - loginSlots
	err := onLoop(c.loop, func() error {
		c.prepares = !c.closed // from here on it does not end, nor does its device
		return c.why
	})
	var b *block
	if err == nil {
		if b, err = c.group.device.memory.take(n*slotSize+(depth+slack)*controlSlot, c.loop.Memory()); err != nil {
			err = login.Errorf(pdu.LoginOutOfResources, "%v", err)
		}
	}
	return onLoop(c.loop, func() error {
		if c.prepares = false; err == nil {
			err = c.why
		}
		if err != nil {
			c.group.device.memory.give(b)
			c.endIfFlushed()
			return err
		}
		c.rx.blocks[1], c.rx.slots[1] = b, n
		for i := range n {
			c.rx.again = append(c.rx.again, uint32(loginSlots+i))
		}
		c.normal, c.tags = r.SessionType == login.Normal, newTags(depth+maxImmediate+slack)
		return c.repost()
	})
}

// maxImmediate is how many commands outside the window the target takes.
const maxImmediate = 64

// Enable implements target.LoginTransport.
func (e *entrance) Enable(p *login.ConnectionParams) (target.Datamover, error) {
	c := e.conn
	err := onLoop(c.loop, func() error {
		if c.why != nil {
			return c.why
		}
		c.tx.longest = min(int(p.InitiatorMaxRecvDataSegmentLength), segmentMost)
		if c.normal {
			b := c.rx.blocks[1]
			c.tx.small = slots{mem: b.mem[c.rx.slots[1]*slotSize:], size: controlSlot, lkey: b.lkey}
			c.tx.longest = min(c.tx.longest, controlMost)
			c.tx.quiet.most = min(quietMost, c.tx.most/4, c.rx.slots[1]/4)
		}
		return nil
	})
	if err != nil {
		e.Close()
	}
	return c, err
}
