package target

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"lunar/target/login"
	"lunar/target/pdu"
)

// loginPhase is one connection's login: the I/O around login.Negotiation. It
// runs on a goroutine of its own, so that a slow login never stalls I/O.
type loginPhase struct {
	server *Server
	conn   *net.TCPConn
	group  *portalGroup
	remote netip.AddrPort
	log    *slog.Logger

	negotiation *login.Negotiation
	statSN      pdu.SN
	request     pdu.BHS
	session     *Session
}

// login takes a connection to full feature phase, or closes it.
func (s *Server) login(conn *net.TCPConn, g *portalGroup) {
	defer s.endLogin(conn)
	p := &loginPhase{server: s, conn: conn, group: g, remote: addrPort(conn.RemoteAddr()), statSN: 1}
	p.log = s.log.With("address", p.remote.String())
	p.negotiation = login.New(login.Config{
		Offer: s.config.Offer, Access: p, Rand: rand.Reader, PortalGroupTag: g.Tag,
	})
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("panic in login: the connection is closed", "panic", v, "stack", string(debug.Stack()))
			conn.Close()
		}
	}()
	conn.SetDeadline(time.Now().Add(s.config.Limits.LoginTimeout))
	if err := p.run(); err != nil {
		conn.Close()
		p.log.Warn("login failed", "initiator", p.negotiation.InitiatorName(),
			"target", p.negotiation.TargetName(), "reason", err)
		if p.session != nil {
			p.session.end()
		}
	}
}

// run exchanges login PDUs until the end of the phase, then hands the
// connection to its event thread.
func (p *loginPhase) run() error {
	for {
		text, err := p.receive()
		if err != nil {
			return err
		}
		req := (*pdu.LoginRequest)(&p.request)
		rsp, err := p.negotiation.Step(req, text)
		if err == nil && rsp.Done {
			err = p.admit(rsp.Result)
		}
		if err != nil {
			return errors.Join(err, p.refuse(req, err))
		}
		if err := p.respond(req, &rsp); err != nil {
			return err
		}
		if rsp.Done {
			return p.handOver(rsp.Result)
		}
	}
}

// receive reads one Login Request and returns its text.
func (p *loginPhase) receive() ([]byte, error) {
	if _, err := io.ReadFull(p.conn, p.request[:]); err != nil {
		return nil, fmt.Errorf("waiting for a login request: %w", err)
	}
	bhs := &p.request
	n := bhs.DataSegmentLength()
	if bhs.Opcode() != pdu.OpLoginRequest || bhs.TotalAHSLength() != 0 || n > login.DefaultMaxRecvDataSegmentLength {
		return nil, fmt.Errorf("%w: opcode %#x with %d bytes of data in login phase, expected a login request of at most %d",
			errProtocol, uint8(bhs.Opcode()), n, login.DefaultMaxRecvDataSegmentLength)
	}
	text := make([]byte, n+pdu.Padding(n))
	if _, err := io.ReadFull(p.conn, text); err != nil {
		return nil, fmt.Errorf("reading a login request: %w", err)
	}
	return text[:n], nil
}

func (p *loginPhase) respond(req *pdu.LoginRequest, rsp *login.Response) error {
	var out pdu.LoginResponse
	out.Init()
	rsp.Put(req, &out)
	if rsp.Done {
		out.SetTSIH(p.session.tsih)
	}
	return p.send(&out, rsp.Text)
}

// refuse sends the status of a login that has failed.
func (p *loginPhase) refuse(req *pdu.LoginRequest, err error) error {
	var fault *login.Error
	if !errors.As(err, &fault) {
		fault = login.Errorf(pdu.LoginTargetError, "%v", err)
	}
	var out pdu.LoginResponse
	out.Init()
	return p.send(&out, fault.Put(req, &out))
}

// send stamps and sends a Login Response. Login Requests are immediate: they
// do not advance CmdSN.
func (p *loginPhase) send(out *pdu.LoginResponse, text []byte) error {
	bhs := out.BHS()
	bhs.SetStatSN(p.statSN)
	p.statSN++
	cmdSN := p.request.CmdSN()
	bhs.SetExpCmdSN(cmdSN)
	bhs.SetMaxCmdSN(cmdSN.Add(uint32(p.server.config.Limits.QueueDepth) - 1))
	wire := append(append(bhs[:len(bhs):len(bhs)], text...), pdu.ZeroPadding(len(text))...)
	_, err := p.conn.Write(wire)
	return err
}

// Lookup implements login.Access for this connection's address.
func (p *loginPhase) Lookup(q login.Query) (login.Auth, *login.Error) {
	s := p.server
	if q.Discovery {
		return s.config.DiscoveryAuth, nil
	}
	t := s.target(q.TargetName)
	if t == nil || !slices.Contains(t.config.PortalGroups, p.group.Tag) {
		return login.Auth{}, login.Errorf(pdu.LoginNotFound, "no target %q in portal group %d", q.TargetName, p.group.Tag)
	}
	rule := t.ruleFor(p.initiator(q.InitiatorName))
	if rule == nil {
		return login.Auth{}, login.Errorf(pdu.LoginAuthorizationFailure, "no access rule of %s matches", t.Name())
	}
	auth := rule.Auth
	auth.TargetAlias = t.config.Alias
	return auth, nil
}

func (p *loginPhase) initiator(name string) Initiator {
	return Initiator{Name: strings.ToLower(name), Addr: p.remote.Addr().WithZone("")}
}

func (s *Server) target(name string) *Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.targets[strings.ToLower(name)]
}

// admit makes the session.
func (p *loginPhase) admit(r *login.Result) error {
	n := &Session{
		server: p.server, initiator: p.initiator(r.InitiatorName), alias: r.InitiatorAlias,
		isid: r.ISID, cid: r.CID, portalGroup: p.group.Tag,
		local: addrPort(p.conn.LocalAddr()), remote: p.remote, params: r.Params,
		ended: make(chan struct{}),
	}
	if r.SessionType == login.Normal {
		n.target = p.server.target(r.TargetName)
		if n.target == nil {
			return login.Errorf(pdu.LoginTargetRemoved, "target %s was removed during login", r.TargetName)
		}
		n.rule = n.target.ruleFor(n.initiator)
		if n.rule == nil {
			return login.Errorf(pdu.LoginAuthorizationFailure, "access was withdrawn during login")
		}
	}
	n.conn = newConnection(n, p.server.homeFor(n.rule))
	if err := p.server.admit(n, r.TSIH); err != nil {
		return err
	}
	p.session = n
	return nil
}

// handOver gives the connection to an event thread.
func (p *loginPhase) handOver(r *login.Result) error {
	n := p.session
	p.conn.SetDeadline(time.Time{})
	mover, err := newTCPMover(p.conn, &r.Params.ConnectionParams)
	if err != nil {
		return err
	}
	n.log().Info("session opened", "portal", n.local.String(), "alias", n.alias, "chap", r.CHAPUser,
		"header_digest", n.params.HeaderDigest, "data_digest", n.params.DataDigest)
	n.conn.post(func() { n.conn.start(mover, p.statSN, p.request.CmdSN()) })
	return nil
}
