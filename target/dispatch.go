package target

import (
	"log/slog"

	"lunar/target/pdu"
)

// request is a received PDU that is being acted on. Its slices are valid until
// Received returns.
type request struct {
	bhs       *pdu.BHS
	ahs       []byte
	data      []byte
	badDigest bool
}

// row says how a request is taken.
type row struct {
	numbered bool // it carries a CmdSN and takes part in the command order
	run      func(*Connection, *request)
}

// requests is the dispatch table of full feature phase, by opcode. What is
// missing is rejected.
var requests = [64]row{
	pdu.OpNOPOut:                {numbered: true, run: (*Connection).nopOut},
	pdu.OpSCSICommand:           {numbered: true, run: (*Connection).scsiCommand},
	pdu.OpTaskManagementRequest: {numbered: true, run: (*Connection).taskManagementRequest},
	pdu.OpTextRequest:           {numbered: true, run: (*Connection).textRequest},
	pdu.OpLogoutRequest:         {numbered: true, run: (*Connection).logoutRequest},
	pdu.OpDataOut:               {run: (*Connection).dataOut},
	pdu.OpSNACKRequest:          {run: (*Connection).snackRequest},
	pdu.OpLoginRequest:          {run: (*Connection).lateLogin},
}

// heldRequest is a request that came within the window, but before one that is
// missing. Its memory is its own. A NOP-Out without a connection is the place of one
// that its initiator has aborted, which the end of no connection gives up: nobody sends
// it again.
type heldRequest struct {
	conn      *Connection
	bhs       pdu.BHS
	ahs, data []byte
	badDigest bool
	follows   []heldRequest // Data-Out PDUs of a command, which come unasked
}

// Received implements Receiver.
func (c *Connection) Received(bhs *pdu.BHS, ahs, data []byte, badDigest bool) {
	c.placing = nil
	if c.closed {
		return
	}
	if c.recall != nil {
		c.recall.acknowledged(bhs.ExpStatSN())
	}
	c.count(bhs, len(data))
	c.request = request{bhs: bhs, ahs: ahs, data: data, badDigest: badDigest}
	r := &c.request
	row := &requests[bhs.Opcode()&0x3f]
	if row.run == nil {
		c.reject(r, pdu.RejectCommandNotSupported)
		return
	}
	if row.numbered && !bhs.Immediate() {
		switch c.window.Admit(bhs.CmdSN()) {
		case Early:
			c.hold(r)
			return
		case Outside:
			c.dropPlaced()
			return
		}
	}
	row.run(c, r)
	if len(c.held) > 0 {
		c.release()
	}
}

// length is what the request occupies besides its header.
func (h *heldRequest) length() int {
	n := len(h.ahs) + len(h.data)
	for i := range h.follows {
		n += pdu.BHSLength + len(h.follows[i].data)
	}
	return n
}

// maxKept bounds the bytes of requests that a session keeps outside the
// buffers: those that came before their turn, and immediate data of commands
// that wait for memory.
const maxKept = 1 << 20

// hold keeps a copy of a request until those before it have come. The window
// bounds their number.
func (c *Connection) hold(r *request) {
	defer c.dropPlaced()
	for i := range c.held {
		if h := &c.held[i]; h.bhs.CmdSN() == r.bhs.CmdSN() && !h.bhs.Immediate() {
			return // a duplicate
		}
	}
	if n := len(r.ahs) + len(r.data); c.kept+n > maxKept {
		c.violation("CmdSN %d before %d with %d bytes more than the %d that wait already, expected no more than %d",
			r.bhs.CmdSN(), c.window.exp, n, c.kept, maxKept)
		return
	}
	c.held = append(c.held, heldRequest{
		conn: c, bhs: *r.bhs, ahs: append([]byte(nil), r.ahs...), data: append([]byte(nil), r.data...), badDigest: r.badDigest,
	})
	c.kept += c.held[len(c.held)-1].length()
}

// holdData keeps a Data-Out PDU if its command is held.
func (c *Connection) holdData(r *request) {
	for i := range c.held {
		h := &c.held[i]
		if h.conn != c || h.bhs.Opcode() != pdu.OpSCSICommand || h.bhs.ITT() != r.bhs.ITT() {
			continue
		}
		if n := pdu.BHSLength + len(r.data); c.kept+n > maxKept {
			c.violation("Data-Out of a command before its turn with %d bytes more than the %d that wait already, expected no more than %d", n, c.kept, maxKept)
		} else {
			c.kept += n
			h.follows = append(h.follows, heldRequest{conn: c, bhs: *r.bhs, data: append([]byte(nil), r.data...), badDigest: r.badDigest})
		}
		return
	}
}

// release runs held requests whose turn has come, each as one of the connection
// that it came by.
func (c *core) release() {
	for i := 0; i < len(c.held); {
		if !c.due(&c.held[i]) {
			i++
			continue
		}
		h := c.unhold(i)
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
func (h *heldRequest) run() {
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

// due reports whether it is a held request's turn, and takes its place in the
// command window. Immediate ones wait for those that were numbered before them.
func (c *core) due(h *heldRequest) bool {
	if h.bhs.Immediate() {
		return h.bhs.CmdSN().LessEq(c.window.exp)
	}
	return c.window.Admit(h.bhs.CmdSN()) == Admitted
}

// unhold takes a held request off the list.
func (c *core) unhold(i int) heldRequest {
	h := c.held[i]
	c.kept -= h.length()
	last := len(c.held) - 1
	c.held[i] = c.held[last]
	c.held[last] = heldRequest{}
	c.held = c.held[:last]
	return h
}

// forgetHeld forgets the held requests of a connection that has ended.
func (c *core) forgetHeld(o *Connection) {
	for i := 0; i < len(c.held); {
		if c.held[i].conn == o {
			c.unhold(i)
		} else {
			i++
		}
	}
}

// finish gives back the place that a numbered request other than a SCSI
// command took in the window.
func (c *Connection) finish(r *request) {
	if !r.bhs.Immediate() {
		c.window.Done()
	}
}

// reject answers a PDU that cannot be acted on with its own header (RFC 7143
// section 11.17).
func (c *Connection) reject(r *request, reason pdu.RejectReason) {
	c.rare.log(c.log, slog.LevelWarn, "PDU rejected", "opcode", r.bhs.Opcode().String(), "reason", reason.String(), "itt", r.bhs.ITT())
	var p pdu.Reject
	p.Init()
	p.SetReason(reason)
	header := append([]byte(nil), r.bhs[:]...)
	p.BHS().SetDataSegmentLength(len(header))
	c.mover.SendControl(p.BHS(), header, nil)
}

func (c *Connection) lateLogin(r *request) {
	c.violation("login request in full feature phase, expected none")
}
