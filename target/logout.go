package target

import (
	"slices"
	"time"

	"lunar/target/pdu"
)

// logoutRequest ends the session or one of its connections (RFC 7143 section 11.14).
// Commands that are still running are ended; the response for another connection
// waits until they have.
func (c *Connection) logoutRequest(r *request) {
	c.releasePlace(r)
	p, itt := (*pdu.LogoutRequest)(r.bhs), r.bhs.ITT()
	switch p.Reason() {
	case pdu.LogoutCloseSession:
		c.ending = true
		for _, o := range slices.Clone(c.conns) {
			if o != c {
				o.close(errLoggedOut)
			}
		}
		c.logoutResponse(itt, pdu.LogoutSuccess, 0)
		c.drain(errLoggedOut)
	case pdu.LogoutCloseConnection:
		c.logoutConnection(itt, p.CID())
	case pdu.LogoutRemoveForRecovery:
		c.removeConnection(itt, p.CID())
	default:
		c.logoutResponse(itt, pdu.LogoutCleanupFailed, 0)
	}
}

// logoutConnection ends this connection or another one.
func (c *Connection) logoutConnection(itt uint32, cid uint16) {
	o := c.connection(cid)
	switch {
	case o == nil:
		c.logoutResponse(itt, pdu.LogoutCIDNotFound, 0)
	case o == c:
		c.logoutResponse(itt, pdu.LogoutSuccess, 0)
		c.drain(errLoggedOut)
	default:
		o.ended = append(o.ended, func() { c.logoutResponse(itt, pdu.LogoutSuccess, 0) })
		o.close(errLoggedOut)
	}
}

// removeConnection ends this connection or another one, which may be lost already,
// and leaves its tasks to be reassigned.
func (c *Connection) removeConnection(itt uint32, cid uint16) {
	o, retain := c.connection(cid), c.session.params.DefaultTime2Retain
	switch {
	case !c.session.recovers():
		c.logoutResponse(itt, pdu.LogoutRecoveryNotSupported, 0)
	case o == nil:
		c.logoutResponse(itt, pdu.LogoutCIDNotFound, 0)
	case o == c:
		c.logoutResponse(itt, pdu.LogoutSuccess, retain)
		c.drain(errRemoved)
	default:
		o.displace(errRemoved, func() { c.logoutResponse(itt, pdu.LogoutSuccess, retain) })
	}
}

// logoutResponse tells for how many seconds after Time2Wait tasks can be reassigned.
func (c *Connection) logoutResponse(itt uint32, response pdu.LogoutResponseCode, retain uint32) {
	if c.closed {
		return
	}
	var rsp pdu.LogoutResponse
	rsp.Init()
	rsp.SetResponse(response)
	rsp.BHS().SetITT(itt)
	wait, _ := c.session.retention()
	rsp.SetTime2Wait(uint16(wait / time.Second))
	rsp.SetTime2Retain(uint16(retain))
	c.mover.SendControl(rsp.BHS(), nil, nil)
}

// announceDrop tells that all connections of the session are about to be dropped, and
// when the initiator may log in again at the earliest.
func (c *Connection) announceDrop() {
	var p pdu.AsyncMessage
	p.Init()
	p.SetEvent(pdu.AsyncDropSession)
	p.SetParameter2(uint16(c.session.params.DefaultTime2Wait))
	c.mover.SendControl(p.BHS(), nil, nil)
}

// requestLogout asks the initiator to log out within the time (RFC 7143
// section 11.9.1, event 1); the caller disconnects who does not. One who has hardly
// logged in has nothing to finish.
func (c *Connection) requestLogout(within time.Duration, why error) {
	if c.mover == nil {
		c.doomed = why
	}
	if c.mover == nil || c.closed {
		return
	}
	var p pdu.AsyncMessage
	p.Init()
	p.SetEvent(pdu.AsyncLogoutRequest)
	p.SetParameter3(uint16(within / time.Second))
	c.mover.SendControl(p.BHS(), nil, nil)
}
