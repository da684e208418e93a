package target

import (
	"lunar/target/pdu"
)

// earlyRequest is a request that came within the window, but before one that is
// missing. Its memory is its own. A NOP-Out without a connection is the place of one
// that its initiator has aborted, which the end of no connection discards: nobody sends
// it again.
type earlyRequest struct {
	conn      *Connection
	bhs       pdu.BHS
	ahs, data []byte
	badDigest bool
	follows   []earlyRequest // Data-Out PDUs of a command, which come unasked
}

// length is what the request occupies besides its header.
func (h *earlyRequest) length() int {
	n := len(h.ahs) + len(h.data)
	for i := range h.follows {
		n += pdu.BHSLength + len(h.follows[i].data)
	}
	return n
}

// maxStashed bounds the bytes of requests that a session keeps outside the
// buffers: those that came before their turn, and immediate data of commands
// that wait for memory.
const maxStashed = 1 << 20

// keepEarly keeps a copy of a request until those before it have come. The window
// bounds their number.
func (c *Connection) keepEarly(r *request) {
	defer c.releasePlaced()
	for i := range c.early {
		if h := &c.early[i]; h.bhs.CmdSN() == r.bhs.CmdSN() && !h.bhs.Immediate() {
			return // a duplicate
		}
	}
	if n := len(r.ahs) + len(r.data); c.stashed+n > maxStashed {
		c.violation("CmdSN %d before %d with %d bytes more than the %d that wait already, expected no more than %d",
			r.bhs.CmdSN(), c.window.exp, n, c.stashed, maxStashed)
		return
	}
	c.early = append(c.early, earlyRequest{
		conn: c, bhs: *r.bhs, ahs: append([]byte(nil), r.ahs...), data: append([]byte(nil), r.data...), badDigest: r.badDigest,
	})
	c.stashed += c.early[len(c.early)-1].length()
}

// keepEarlyData keeps a Data-Out PDU if its command is early.
func (c *Connection) keepEarlyData(r *request) {
	for i := range c.early {
		h := &c.early[i]
		if h.conn != c || h.bhs.Opcode() != pdu.OpSCSICommand || h.bhs.ITT() != r.bhs.ITT() {
			continue
		}
		if n := pdu.BHSLength + len(r.data); c.stashed+n > maxStashed {
			c.violation("Data-Out of a command before its turn with %d bytes more than the %d that wait already, expected no more than %d", n, c.stashed, maxStashed)
		} else {
			c.stashed += n
			h.follows = append(h.follows, earlyRequest{conn: c, bhs: *r.bhs, data: append([]byte(nil), r.data...), badDigest: r.badDigest})
		}
		return
	}
}

// runEarly runs early requests whose turn has come, each as one of the connection
// that it came by.
func (c *sessionState) runEarly() {
	for i := 0; i < len(c.early); {
		if !c.inTurn(&c.early[i]) {
			i++
			continue
		}
		h := c.takeEarly(i)
		if h.conn == nil {
			c.window.Done()
		} else {
			h.run()
		}
		i = 0
	}
}

// run takes the request. Memory that its connection has named for a PDU that is still
// being received is none of its.
func (h *earlyRequest) run() {
	c := h.conn
	placed := c.takePlaced()
	r := request{bhs: &h.bhs, ahs: h.ahs, data: h.data, badDigest: h.badDigest}
	requests[h.bhs.Opcode()&0x3f].run(c, &r)
	if c.closed {
		releaseRef(placed)
		return
	}
	c.placed = placed
	for i := range h.follows {
		if !c.closed {
			h.follows[i].run()
		}
	}
}

// inTurn reports whether it is an early request's turn, and takes its place in the
// command window. Immediate ones wait for those that were numbered before them.
func (c *sessionState) inTurn(h *earlyRequest) bool {
	if h.bhs.Immediate() {
		return h.bhs.CmdSN().LessEq(c.window.exp)
	}
	return c.window.Admit(h.bhs.CmdSN()) == Admitted
}

// takeEarly takes an early request off the list.
func (c *sessionState) takeEarly(i int) earlyRequest {
	h := c.early[i]
	c.stashed -= h.length()
	last := len(c.early) - 1
	c.early[i] = c.early[last]
	c.early[last] = earlyRequest{}
	c.early = c.early[:last]
	return h
}

// discardEarly discards the early requests of a connection that has ended.
func (c *sessionState) discardEarly(o *Connection) {
	for i := 0; i < len(c.early); {
		if c.early[i].conn == o {
			c.takeEarly(i)
		} else {
			i++
		}
	}
}
