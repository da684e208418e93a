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
	c.finish(r)
	p, itt := (*pdu.LogoutRequest)(r.bhs), r.bhs.ITT()
	switch p.Reason() {
	case pdu.LogoutCloseSession:
		c.ending = true
		for _, o := range slices.Clone(c.conns) {
			if o != c {
				o.close(errLoggedOut)
			}
		}
		c.logoutResponse(itt, pdu.LogoutSuccess)
		c.drain(errLoggedOut)
	case pdu.LogoutCloseConnection:
		c.logoutConnection(itt, p.CID())
	case pdu.LogoutRemoveForRecovery:
		c.logoutResponse(itt, pdu.LogoutRecoveryNotSupported)
	default:
		c.logoutResponse(itt, pdu.LogoutCleanupFailed)
	}
}

// logoutConnection ends this connection or another one.
func (c *Connection) logoutConnection(itt uint32, cid uint16) {
	o := c.connection(cid)
	switch {
	case o == nil:
		c.logoutResponse(itt, pdu.LogoutCIDNotFound)
	case o == c:
		c.logoutResponse(itt, pdu.LogoutSuccess)
		c.drain(errLoggedOut)
	default:
		o.ended = append(o.ended, func() { c.logoutResponse(itt, pdu.LogoutSuccess) })
		o.close(errLoggedOut)
	}
}

func (c *Connection) logoutResponse(itt uint32, response pdu.LogoutResponseCode) {
	if c.closed {
		return
	}
	var rsp pdu.LogoutResponse
	rsp.Init()
	rsp.SetResponse(response)
	rsp.BHS().SetITT(itt)
	rsp.SetTime2Wait(uint16(c.session.params.DefaultTime2Wait))
	rsp.SetTime2Retain(0)
	c.mover.SendControl(rsp.BHS(), nil, nil)
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
