package target

import (
	"time"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// nopState watches whether the initiator lives: after NOPInterval of silence it
// is asked by a NOP-In, and when it does not answer within NOPTimeout the
// connection ends.
type nopState struct {
	timer evloop.Timer
	heard int64  // when the last bytes came, on the loop's clock
	ping  uint32 // Target Transfer Tag of the question under way, 0: none
	asked int64
	last  bool // the time to answer is over; one more pass
}

func (c *Connection) armNOP() {
	c.nop.heard = c.thread.loop.Now()
	if interval := c.session.settings.NOPInterval; interval > 0 {
		c.thread.loop.Arm(&c.nop.timer, interval)
	}
}

// checkNOP is the timer.
func (c *Connection) checkNOP() {
	defer c.Contain()
	config, now := c.session.settings, c.thread.loop.Now()
	if c.share.waits() {
		c.nop.heard = now
	}
	if c.nop.heard > c.nop.asked {
		c.nop.ping = 0
	}
	silence := time.Duration(now - c.nop.heard)
	next := config.NOPInterval - silence
	switch {
	case c.nop.ping != 0:
		waited := time.Duration(now - c.nop.asked)
		if waited >= config.NOPTimeout && c.nop.last {
			c.close(errNOPTimeout)
			return
		}
		// After a pause of the whole machine the answer may lie in the
		// socket: the next pass reads before it looks at the timers.
		c.nop.last = waited >= config.NOPTimeout
		next = config.NOPTimeout - waited
	case next <= 0:
		c.sendPing()
		next = config.NOPTimeout
	}
	c.thread.loop.Arm(&c.nop.timer, max(next, time.Millisecond))
}

// sendPing asks for an answer (RFC 7143 section 11.19).
func (c *Connection) sendPing() {
	c.nop.ping, c.nop.asked, c.nop.last = c.ask(), c.thread.loop.Now(), false
}

// ask sends a NOP-In that the initiator has to answer, and returns its Target
// Transfer Tag.
func (c *Connection) ask() (ttt uint32) {
	ttt = c.newTTT()
	var p pdu.NOPIn
	p.Init()
	p.BHS().SetITT(pdu.ReservedTag)
	p.BHS().SetTTT(ttt)
	c.mover.SendControl(p.BHS(), nil, nil)
	return ttt
}

// nopOut answers a ping, or takes the answer to ours (RFC 7143 section 11.18).
func (c *Connection) nopOut(r *request) {
	c.releasePlace(r)
	if r.badDigest {
		c.reject(r, pdu.RejectDataDigestError)
		return
	}
	if r.bhs.ITT() == pdu.ReservedTag { // the bytes alone showed that it lives
		c.answered(r.bhs.TTT())
		return
	}
	data := r.data[:min(len(r.data), c.maxControl())]
	c.charge(len(data) / workBytes)
	var p pdu.NOPIn
	p.Init()
	p.BHS().SetLUN(r.bhs.LUN())
	p.BHS().SetITT(r.bhs.ITT())
	p.BHS().SetTTT(pdu.ReservedTag)
	p.BHS().SetDataSegmentLength(len(data))
	c.mover.SendControl(p.BHS(), append([]byte(nil), data...), nil)
}
