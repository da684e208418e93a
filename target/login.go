package target

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"lunar/internal/iscsiname"
	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/pdu"
)

// loginPhase is one connection's login: the I/O around login.Negotiation. It
// runs on a goroutine of its own, so that a slow login never stalls I/O.
type loginPhase struct {
	server    *Server
	transport LoginTransport
	assisted  AssistedTransport // the same if it is one
	group     uint16            // tag of the portal group that the connection came in by
	portal    Portal            // of the group, that accepted the connection; may be nil
	log       *slog.Logger

	// By what the login is judged: it is refused if that has changed when it is over.
	settings *Settings
	target   *Target       // nil in a discovery session
	config   *TargetConfig // of target

	partial     map[string]bool // by what was traced: its last text goes on
	negotiation *login.Negotiation
	absent      string // why the target does not exist for the initiator, which does not learn it
	statSN      pdu.SN
	cmdSN       pdu.SN // of the request that is being answered
	session     *Session
	joins       *Session    // that the initiator asks to join, once it is known who asks
	conn        *Connection // of the session, which it starts or joins
}

// Login takes a connection that came in by the portal group with this tag to
// full feature phase, or closes it. It blocks until the one or the other.
func (s *Server) Login(transport LoginTransport, tag uint16) { s.login(transport, tag, nil) }

// login is Login for a connection that a portal has accepted.
func (s *Server) login(transport LoginTransport, tag uint16, portal Portal) {
	p := &loginPhase{server: s, transport: transport, group: tag, portal: portal, settings: s.settings.Load(), statSN: 1, partial: map[string]bool{}}
	p.log = s.logFor(transport.Remote().Addr(), false).With("address", transport.Remote().String())
	offer := s.config.Offer
	offer.MaxConnections = uint32(p.settings.Limits.MaxConnections)
	offer.ErrorRecoveryLevel = uint32(p.settings.Limits.Recovery)
	if t, ok := transport.(AssistedTransport); ok {
		p.assisted, offer = t, t.Offer(offer)
	}
	p.negotiation = login.New(login.Config{
		Offer: offer, Access: p, Rand: rand.Reader, PortalGroupTag: tag, Exchanges: &s.exchanges,
	})
	defer p.negotiation.End()
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("panic in login: the connection is closed", "panic", v, "stack", string(debug.Stack()))
			p.close()
		}
	}()
	transport.SetDeadline(time.Now().Add(s.settings.Load().Limits.LoginTimeout))
	if err := p.run(); err != nil {
		p.close()
		s.loginFailed(transport.Remote().Addr(), err)
		p.complain(err)
	}
}

// complain logs why a login failed; a flood of them is no flood of lines. Who
// connects and says nothing, as port scans and health checks do, is no news.
func (p *loginPhase) complain(why error) {
	if errors.Is(why, io.EOF) && p.negotiation.InitiatorName() == "" {
		p.log.Debug("connection closed before the login", "reason", why)
		return
	}
	if left := errors.Is(why, io.EOF) || errors.Is(why, syscall.ECONNRESET); left && p.negotiation.Answered() {
		why = fmt.Errorf("the initiator went away after the target's answer to its CHAP challenge: it does not accept the target's name or secret (mutual): %w", why)
	}
	args := []any{"initiator", iscsiname.Printable(p.negotiation.InitiatorName()), "target", iscsiname.Printable(p.negotiation.TargetName())}
	if user := p.negotiation.User(); user != "" {
		args = append(args, "user", iscsiname.Printable(user))
	}
	if p.absent != "" {
		why = fmt.Errorf("%s, which the initiator is not told: %w", p.absent, why)
	}
	level, what := slog.LevelWarn, "login failed"
	if fault := (*login.Error)(nil); errors.As(why, &fault) && fault.TargetAddress != "" {
		level, what = slog.LevelInfo, "login redirected" // as the configuration or a drain says
	}
	reason := strings.ReplaceAll(why.Error(), "\n", "; ")
	p.server.failures.note(Failure{
		At: time.Now(), Local: p.transport.Local(), Remote: p.transport.Remote(), Reason: reason,
		Initiator: p.negotiation.InitiatorName(), User: p.negotiation.Claimed().User, Target: p.negotiation.TargetName(),
	})
	p.log.Log(context.Background(), level, what, append(args, "reason", iscsiname.Printable(reason))...)
}

// close ends a connection that does not come to full feature phase.
func (p *loginPhase) close() {
	p.transport.Close()
	if p.conn != nil {
		p.conn.post(p.conn.cancel)
	}
}

// run exchanges login PDUs until the end of the phase, then hands the
// connection to its event thread.
func (p *loginPhase) run() error {
	for {
		bhs, text, err := p.transport.Receive()
		if err != nil {
			return err
		}
		req := (*pdu.LoginRequest)(bhs)
		p.cmdSN = bhs.CmdSN()
		p.server.loginGoesOn(p.transport)
		p.trace("login request", text, req.Continue())
		rsp, err := p.negotiation.Step(req, text)
		if err == nil && rsp.Done {
			err = p.admit(rsp.Result)
		}
		if err != nil {
			if !p.punish(err) {
				return err
			}
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

func (p *loginPhase) respond(req *pdu.LoginRequest, rsp *login.Response) error {
	var out pdu.LoginResponse
	out.Init()
	rsp.Put(req, &out)
	if rsp.Done {
		out.SetTSIH(p.session.tsih)
	}
	p.trace("login response", rsp.Text, out.Continue())
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
// do not advance CmdSN. A connection that has joined a session is told that session's
// command window. One that only claims to is told what it has to ignore (RFC 7143
// section 4.2.2.1), because no window of somebody else's session concerns it.
func (p *loginPhase) send(out *pdu.LoginResponse, text []byte) error {
	bhs := out.BHS()
	bhs.SetStatSN(p.statSN)
	p.statSN++
	depth := uint32(p.settings.Limits.QueueDepth)
	exp, max := p.cmdSN, p.cmdSN.Add(depth-1)
	switch {
	case p.joins != nil && p.session == p.joins:
		exp, max = p.joins.state.Granted()
	case p.session == nil && out.TSIH() != 0:
		exp, max = p.cmdSN.Add(-depth), p.cmdSN.Add(^uint32(0))
	}
	bhs.SetExpCmdSN(exp)
	bhs.SetMaxCmdSN(max)
	return p.transport.Send(bhs, text)
}

// Lookup implements login.Access for this connection's address. Targets that are not
// there, that are not for the initiator, and that are not reached by this portal group
// answer alike.
func (p *loginPhase) Lookup(q login.Query) (login.Auth, *login.Error) {
	s := p.server
	if fault := nameFault(q.InitiatorName); fault != nil {
		return login.Auth{}, fault
	}
	if q.Discovery {
		return p.settings.DiscoveryAuth, nil
	}
	c := Claim{Initiator: p.initiator(q.InitiatorName, login.Proof{}), Target: q.TargetName, Group: p.group, Local: p.transport.Local()}
	f := s.find(&c)
	if f.absent != "" {
		auth, fault := s.nothing(&c, f.absent)
		if fault == nil || fault.Status() != pdu.LoginNotFound {
			p.absent = f.absent
		}
		return auth, fault
	}
	p.target, p.config = f.target, f.config
	auth := f.config.Access[f.rule].Auth
	auth.TargetAlias = f.config.Alias
	s.mu.Lock()
	defer s.mu.Unlock()
	return auth, s.diversion(f.config, p.group, p.transport.Local())
}

// nothing answers for a target that the initiator is not to know of: as one of those
// that ask for CHAP would answer to who is nobody there, if there are any. A portal that
// serves no target now sends everybody away.
func (s *Server) nothing(c *Claim, why string) (login.Auth, *login.Error) {
	s.mu.Lock()
	fault := s.portalDiversion(c.Group, c.Local)
	s.mu.Unlock()
	if fault != nil {
		return login.Auth{}, fault
	}
	if masks := s.masks(); len(masks) > 0 {
		return masks[maphash.String(maskSeed, strings.ToLower(c.Target))%uint64(len(masks))].Nobody(), nil
	}
	return login.Auth{}, login.Errorf(pdu.LoginNotFound, "%s", why)
}

// maskSeed has a name that is not there answer alike every time.
var maskSeed = maphash.MakeSeed()

// masked are the ways in which targets ask for CHAP, as of some changes of the directory.
type masked struct {
	asOf uint64
	all  []*login.Auth
}

// masks are masked as of now. They are kept, since looking through all targets would
// take so long that it told of a name that is not there.
func (s *Server) masks() []*login.Auth {
	if m := s.masked.Load(); m != nil && m.asOf == s.directory.changes.Load() {
		return m.all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &masked{asOf: s.directory.changes.Load()}
	for _, t := range s.mu.order {
		for i, rules := 0, t.config.Load().Access; i < len(rules); i++ {
			if auth := &rules[i].Auth; !auth.AllowNone {
				m.all = append(m.all, auth)
			}
		}
	}
	s.masked.Store(m)
	return m.all
}

func (p *loginPhase) initiator(name string, proof login.Proof) Initiator {
	return Initiator{Name: strings.ToLower(name), Addr: p.transport.Remote().Addr().WithZone(""), Proof: proof}
}

func (s *Server) target(name string) *Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.targets[strings.ToLower(name)]
}

// admit makes the session, or lets the connection join one.
func (p *loginPhase) admit(r *login.Result) error {
	if p.assisted != nil {
		if err := p.agreeOnAssistance(r); err != nil {
			return err
		}
	}
	n := &Session{
		node: p.server, initiator: p.initiator(r.InitiatorName, r.Proof), alias: iscsiname.Printable(r.InitiatorAlias),
		isid: r.ISID, portalGroup: p.group, portal: p.portal,
		local: p.transport.Local(), remote: p.transport.Remote(), params: r.Params, assisted: p.assisted != nil,
		origin: p.origin(), settings: p.settings,
	}
	if r.SessionType == login.Normal {
		if p.target == nil {
			return login.Errorf(pdu.LoginNotFound, "%s", p.absent)
		}
		n.target, n.admittedBy = p.target, p.config
	}
	rule, fault := n.judge(p.settings, n.admittedBy)
	if fault != nil { // about the name: the rest was asked for
		p.server.refusals.Add(refusals.LoginName)
		return fault
	}
	if fault = n.trespass(rule); fault != nil {
		p.server.refusals.Add(refusals.LoginPort)
		return fault
	}
	if p.joins = p.server.sharedSession(r.TSIH, r.ISID); p.joins != nil {
		return p.join(n, rule, r.CID)
	}
	first := n.join(rule, p.home(n, rule), p.cmdSN, r.CID)
	if err := p.server.admit(n, r.TSIH); err != nil {
		return err
	}
	p.session, p.conn = n, first
	return nil
}

// origin is where the connection's packets come from.
func (p *loginPhase) origin() origin {
	from := origin{node: p.server.nodeOf(p.transport.Local().Addr()), cpu: -1}
	if t, ok := p.transport.(interface{ IncomingCPU() int }); ok {
		from.cpu = t.IncomingCPU()
	}
	return from
}

// home is the event thread that the connection starts on.
func (p *loginPhase) home(n *Session, rule *AccessRule) *thread {
	if p.assisted != nil {
		return p.server.threadOf(p.assisted.Loop())
	}
	return p.server.homeFor(rule, n.origin)
}

// handOver gives the connection to an event thread.
func (p *loginPhase) handOver(r *login.Result) error {
	n := p.session
	p.transport.SetDeadline(time.Time{})
	mover, err := p.transport.Enable(&r.Params.ConnectionParams)
	if err != nil {
		return err
	}
	what := "session opened"
	if p.joins != nil {
		what = "connection opened"
	}
	n.logOf(p.conn).Info(what, "portal", p.conn.local.String(), "alias", n.alias, "chap", iscsiname.Printable(r.Proof.User),
		"header_digest", r.Params.HeaderDigest, "data_digest", r.Params.DataDigest)
	p.conn.post(func() { p.conn.start(mover, p.statSN) })
	return nil
}

// agreeOnAssistance settles what a login over an AssistedTransport has to have
// come to.
func (p *loginPhase) agreeOnAssistance(r *login.Result) error {
	if r.SessionType == login.Normal && !r.Params.RDMAExtensions {
		return login.Errorf(pdu.LoginInitiatorError, "the initiator has not agreed on RDMAExtensions=Yes, without which there is no session over iSER")
	}
	// R2Ts end in RDMA Reads of our own, which the initiator does not see.
	r.Params.MaxOutstandingR2T = maxOutstandingR2T
	return p.assisted.Prepare(r, p.settings.Limits.QueueDepth)
}
