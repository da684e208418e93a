package target

import (
	"time"

	"lunar/target/pdu"
)

// logoutRequest ends the session, or its only connection, which is the same
// (RFC 7143 section 11.14). Commands that are still running are ended.
func (c *Connection) logoutRequest(r *request) {
	c.finish(r)
	p := (*pdu.LogoutRequest)(r.bhs)
	response := c.judgeLogout(p)
	var rsp pdu.LogoutResponse
	rsp.Init()
	rsp.SetResponse(response)
	rsp.BHS().SetITT(r.bhs.ITT())
	rsp.SetTime2Wait(uint16(c.session.params.DefaultTime2Wait))
	rsp.SetTime2Retain(0)
	c.mover.SendControl(rsp.BHS(), nil, nil)
	if response == pdu.LogoutSuccess {
		c.drain(errLoggedOut)
	}
}

func (c *Connection) judgeLogout(p *pdu.LogoutRequest) pdu.LogoutResponseCode {
	switch p.Reason() {
	case pdu.LogoutCloseSession:
		return pdu.LogoutSuccess
	case pdu.LogoutCloseConnection:
		if p.CID() == c.session.cid {
			return pdu.LogoutSuccess
		}
		return pdu.LogoutCIDNotFound
	case pdu.LogoutRemoveForRecovery:
		return pdu.LogoutRecoveryNotSupported
	}
	return pdu.LogoutCleanupFailed
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
