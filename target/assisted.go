package target

import (
	"net/netip"
	"slices"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// AssistedTransport is the LoginTransport of a connection that goes on in
// iSER-assisted mode (RFC 7145): its Datamover is an Assistant. Discovery
// sessions are served by it too, without the key RDMAExtensions.
type AssistedTransport interface {
	LoginTransport
	// Offer returns what is negotiated over this transport, made of the
	// server's offer.
	Offer(login.Offer) login.Offer
	// Prepare readies the transport for a session of up to depth commands,
	// before the final Login Response leaves (RFC 7145 section 5.1.1:
	// Allocate_Connection_Resources).
	Prepare(r *login.Result, depth int) error
	// Loop is the event thread that serves the connection as long as it lives.
	Loop() *evloop.Loop
}

// Assistant is a Datamover that moves data by itself, without Data-In, R2T and
// Data-Out PDUs of which the initiator knows (RFC 7145 section 7.3). PutData
// moves to the initiator's buffer; it may be of any length and never carries a
// status. GetData is not used.
type Assistant interface {
	Datamover
	// Fetch moves the data that the R2T names from the initiator's buffer to
	// dst. Receiver.Fetched tells the end. Until then, or until
	// Receiver.Closed, dst is the transport's: it cannot be taken back.
	Fetch(bhs *pdu.R2T, dst []byte)
	// Deallocate forgets the initiator's buffers of a task that ends
	// without a SCSI Response (RFC 5047: Deallocate_Task_Resources). After a
	// SCSI Response they are forgotten anyway.
	Deallocate(itt uint32)
	// MaxControl is the longest data segment of SendControl.
	MaxControl() int
}

// Portal is a listening end of a transport other than TCP.
type Portal interface {
	// Open begins to listen; every connection is given to accept, which does
	// not block. One that is closed can be opened again.
	Open(accept func(AssistedTransport)) error
	// Addr is the address that it is to listen on; once it is open, the one
	// that it listens on.
	Addr() netip.AddrPort
	Close() error
}

// QueueDepth is how many commands a session that logs in now may have under way.
func (s *Server) QueueDepth() int { return s.settings.Load().Limits.QueueDepth }

// acceptAssisted starts the login of a connection that came in by a portal of the group.
func (s *Server) acceptAssisted(t AssistedTransport, tag uint16, by Portal) {
	wait, ok := s.beginLogin(t, t.Remote().Addr())
	if !ok {
		s.turnedAway(t, "portal", t.Local().String())
		return
	}
	s.running.Go(func() {
		defer s.endLogin(t)
		if s.pause(wait) {
			s.login(t, tag, by)
		} else {
			t.Close()
		}
	})
}

// LoopsFor returns the event threads that may serve a connection from remote to
// the portal group's address local, before it is known what it wants: those of the
// logical units that the group leads it to, and of them those of the NUMA node
// of the network device.
func (s *Server) LoopsFor(tag uint16, local, remote netip.Addr) []*evloop.Loop {
	group, nic := s.reachedBy(tag, remote), s.nics.node(local)
	var all, near []*evloop.Loop
	for _, th := range group {
		all = append(all, th.loop)
		if nic >= 0 && s.config.Topology.MemoryNode(th.loop.Node()) == nic {
			near = append(near, th.loop)
		}
	}
	if len(near) > 0 {
		return near
	}
	return all
}

// reachedBy returns the event threads of the logical units that an initiator at
// the address may see through a portal group; all if there are none.
func (s *Server) reachedBy(tag uint16, remote netip.Addr) []*thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*thread
	for _, t := range s.mu.order {
		config := t.config.Load()
		if !slices.Contains(config.PortalGroups, tag) {
			continue
		}
		for i := range config.Access {
			if r := &config.Access[i]; r.matchesAddr(remote) {
				out = s.appendHomes(out, r)
			}
		}
	}
	if len(out) == 0 {
		return s.threads
	}
	return out
}

func (s *Server) appendHomes(out []*thread, r *AccessRule) []*thread {
	for _, m := range r.LUNs {
		for _, th := range s.mu.homes[m.LU] {
			if !slices.Contains(out, th) {
				out = append(out, th)
			}
		}
	}
	return out
}

// threadOf returns the event thread that runs the loop, which is the server's.
func (s *Server) threadOf(loop *evloop.Loop) *thread {
	return s.threads[slices.IndexFunc(s.threads, func(th *thread) bool { return th.loop == loop })]
}

// Fetched implements Receiver: the data of an R2T are where they belong.
func (c *Connection) Fetched(itt, ttt uint32) {
	t := c.tasks.find(itt)
	if c.closed || t == nil {
		return
	}
	s := t.sequenceOf(ttt)
	if s == nil {
		return
	}
	off, n := s.next, s.end-s.next
	t.closeSequence(s)
	t.moved = c.thread.loop.Now()
	if !t.dying {
		t.arrived(off, n)
	} else if t.r2tCount == 0 {
		c.abort(t)
	}
}

// fetching reports whether the transport is writing to memory of the task by
// itself: an RDMA Read cannot be called back, and the initiator must not be
// told of the task's end while one is under way (RFC 7145 section 7.3.5: its
// buffer is another's by then).
func (t *task) fetching() bool { return t.conn.assist != nil && t.r2tCount > 0 && !t.conn.closed }

// arrived counts n bytes at off that lie in the place of one want.
func (t *task) arrived(off, n uint32) {
	i := t.wantIndex(off)
	if i < 0 {
		return
	}
	w := &t.wants[i]
	w.got += int(n)
	if w.got == len(w.dst) && t.finishWant(i) {
		return
	}
	t.solicit()
}

// putAssisted is SendDataIn in iSER-assisted mode: all at once, and the status in
// a PDU of its own (RFC 7145 section 7.3.4).
func (t *task) putAssisted(cmd *scsi.Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	c := t.conn
	p := (*pdu.DataIn)(&c.header).Init()
	p.BHS().SetFinal(true)
	p.BHS().SetDataSegmentLength(len(data))
	p.BHS().SetITT(t.itt)
	p.BHS().SetTTT(pdu.ReservedTag)
	p.SetDataSN(t.dataSN)
	p.SetBufferOffset(off)
	t.dataSN++
	t.sent = off + uint32(len(data))
	c.mover.PutData(p, data, ref)
	if last {
		t.respond(cmd)
	}
}

// maxControl is the longest data segment of a PDU that is no Data-In.
func (c *Connection) maxControl() int {
	if c.assist != nil {
		return c.assist.MaxControl()
	}
	return c.mover.MaxDataIn()
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
