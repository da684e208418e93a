package target

import (
	"log/slog"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// Spent implements Receiver.
func (c *Connection) Spent(bhs *pdu.BHS) bool { return c.thread.shares.spent(&c.share, bhs) }

// deliver takes what has waited for the connection's turn.
func (c *Connection) deliver() {
	if !c.closed {
		c.mover.Resume()
	}
}

// suspend keeps everything that the connection sends waiting until proceed.
func (c *Connection) suspend() { c.share.suspended = true }

func (c *Connection) proceed() {
	if c.closed {
		c.share.suspended = false
		return
	}
	c.thread.shares.proceed(&c.share)
}

// charge counts control work.
func (c *Connection) charge(work int) { c.thread.shares.charge(&c.share, work) }

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

// Received implements Receiver.
func (c *Connection) Received(bhs *pdu.BHS, ahs, data []byte, badDigest bool) {
	c.placing = nil
	if c.closed {
		return
	}
	if c.recall != nil {
		c.recall.acknowledged(bhs.ExpStatSN())
	}
	if badDigest {
		c.thread.incidents.dataDigests.Add(1)
	}
	if c.trace != nil {
		c.trace.received(c, bhs, badDigest)
	}
	c.thread.shares.count(&c.share, bhs, len(data))
	if c.recent != nil {
		c.thread.gate.serve(c.recent.queue)
	}
	c.request = request{bhs: bhs, ahs: ahs, data: data, badDigest: badDigest}
	r := &c.request
	op, immediate, sn := bhs.Request()
	row := &requests[op&0x3f]
	if row.run == nil {
		c.reject(r, pdu.RejectCommandNotSupported)
		return
	}
	if row.numbered && !immediate {
		switch c.window.Admit(sn) {
		case Early:
			c.keepEarly(r)
			return
		case Outside:
			c.releasePlaced()
			return
		}
	}
	row.run(c, r)
	if len(c.early) > 0 {
		c.runEarly()
	}
}

// Stamp implements Receiver: the one place where sequence numbers of outgoing
// PDUs are set.
func (c *Connection) Stamp(bhs *pdu.BHS) {
	exp, max := c.window.Grant()
	if c.shared {
		c.publishGrant(exp, max)
	}
	if bhs.Stamp(c.statSN, exp, max) {
		if c.recall != nil {
			c.recall.numbered(c.statSN)
		}
		c.statSN++
	}
	if c.trace != nil {
		c.trace.note(c, PDUSent, bhs)
	}
}

// Prior implements Receiver. It goes by the LUN that the connection used last.
func (c *Connection) Prior() bool { return c.recent != nil && c.thread.gate.Prior(c.recent.queue) }

// Promised implements Receiver.
func (c *Connection) Promised() bool {
	return c.recent != nil && c.recent.queue != nil && c.recent.queue.Promised()
}

// Sender implements Receiver. A connection keeps to one thread of each node.
func (c *Connection) Sender(node int) *evloop.Loop {
	if node == c.thread.loop.Node() {
		return nil
	}
	return c.session.node.sender(node, int(c.session.tsih))
}

// Heard implements Receiver.
func (c *Connection) Heard() { c.nop.heard = c.thread.loop.Now() }

// Drained implements Receiver.
func (c *Connection) Drained() {
	if c.migration.next != nil {
		c.moveIfIdle()
	}
}

// Contain implements Receiver.
func (c *Connection) Contain() {
	if p := recover(); p != nil {
		c.panicked(p)
	}
}

// releasePlace gives back the place that a numbered request other than a SCSI
// command took in the window.
func (c *Connection) releasePlace(r *request) {
	if !r.bhs.Immediate() {
		c.window.Done()
	}
}

// reject answers a PDU that cannot be acted on with its own header (RFC 7143
// section 11.17).
func (c *Connection) reject(r *request, reason pdu.RejectReason) {
	c.rare.Log(c.log, slog.LevelWarn, "PDU rejected", "opcode", r.bhs.Opcode().String(), "reason", reason.String(), "itt", r.bhs.ITT())
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
