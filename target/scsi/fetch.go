package scsi

import "lunar/target/scsi/sense"

// fetch obtains a working buffer of room bytes with n bytes of Data-Out behind
// it, and goes on with then when they are there. The buffer is page-aligned; n
// bytes also become Length, and less of them come if the initiator has fewer.
// It is released when the command ends.
func (c *Command) fetch(n, room uint32, then func(*Command)) {
	if n+room > SegmentSize {
		c.Fail(sense.InsufficientResources)
		return
	}
	c.Length, c.next, c.parsed = n, room, then
	c.limit = c.dataOut()
	if c.limit+room == 0 {
		then(c)
		return
	}
	c.run(fetchStep)
}

func fetchStep(c *Command) {
	if c.list == nil && !c.askList() {
		return
	}
	if c.out > 0 {
		return
	}
	c.step = nil
	c.again = false
	c.parsed(c)
}

// askList starts the reception of the parameter list.
func (c *Command) askList() bool {
	room := c.next
	ref := c.alloc(room+c.limit, room == 0)
	if ref == nil {
		return false
	}
	c.list, c.data = ref, ref.Bytes()[room:]
	if c.limit > 0 {
		c.out++
		c.Port.ReceiveDataOut(c, 0, c.data)
	}
	return true
}

// List returns the Data-Out parameter list of a ParameterList row: what arrived
// of it. It is valid until the command ends.
func (c *Command) List() []byte { return c.data }

// workspace returns the working buffer in front of the list.
func (c *Command) workspace() []byte {
	b := c.list.Bytes()
	return b[:len(b)-len(c.data)]
}
