package target

import (
	"slices"

	"lunar/internal/buf"
	"lunar/internal/memcopy"
	"lunar/target/pdu"
)

// maxRecalled bounds the data that a connection keeps for retransmission, in bytes:
// those of Data-In at ErrorRecoveryLevel 1, and as many of other PDUs; maxRecalledPDUs
// bounds the number of the former. Of the others there are at most twice as many as the
// session may have commands, or leastStatuses: one PDU may acknowledge them all, and what
// that costs the event thread is done in one go. The oldest is forgotten beyond it: who
// asks for it then gets a Reject.
const (
	maxRecalled     = 4 << 20
	maxRecalledPDUs = 8192
	leastStatuses   = 1024
)

// maxDepot bounds the memory of an event thread for what its connections keep, beyond which
// that lies in the Go heap; spareDepot is how much of it stays when nothing is kept for long.
const (
	maxDepot   = 512 << 20
	spareDepot = 16 << 20
)

// recall is the Datamover of a connection from ErrorRecoveryLevel 1 on: it keeps what it
// sends until the initiator has it, by ExpStatSN or a DataACK, to send it again when a
// SNACK asks for it (RFC 7143 section 7.1.4.2). Data are kept as copies, so that no
// buffer that others wait for depends on an acknowledgement. The copies lie outside the Go
// heap, whose collector would have the thread's CPU for what a peer lets pile up.
//
// At level 2 no data are forgotten, since they may be all that is left of a task. The
// copies count in the session's memory instead: reads wait until others have been
// acknowledged, for which the initiator is asked. On a connection that is lost nothing
// can be acknowledged; what it keeps is bounded apart (retain.go).
type recall struct {
	Resender
	of       recaller
	lasting  bool       // at level 2: no data are forgotten, and they count in the session's memory
	memory   *buf.Depot // of the event thread
	statuses []recalled // in order of StatSN; those at the end are not stamped yet
	room     []recalled // what statuses lie in
	depth    int        // commands that the session may have
	stamped  int        // of statuses
	owed     int        // bytes of their data
	parts    parts      // Data-In and R2T
	retained bool       // the data count in what the server keeps for lost connections

	asked uint32 // Target Transfer Tag of the NOP-In that asks for an acknowledgement, or 0
	fresh bool   // something was sent since
}

// recaller is what a recall asks of the connection that it is of.
type recaller interface {
	// nextAnswer numbers the responses of all connections of the session.
	nextAnswer() uint64
	// exists reports whether a task with the tag is there, awaits whether it waits for
	// the answer to an R2T.
	exists(itt uint32) bool
	awaits(itt, ttt uint32) bool
	// renumber sets the next DataSN of a task, if it is there, and the SNACK Tag of its
	// response.
	renumber(itt uint32, next pdu.SN, snackTag uint32)
	// keeps counts bytes that are kept, or forgotten, in the session's memory; once the
	// connection is lost in what the server keeps for all of those.
	keeps(bytes int, lost bool)
	// inShort reports whether others wait for the session's memory, and askForACKs has
	// the initiator acknowledge what keeps it.
	inShort() bool
	askForACKs()
	// charge counts work that the initiator has asked for.
	charge(work int)
}

// recalled is a PDU that was sent, or is in the send queue.
type recalled struct {
	bhs  pdu.BHS
	data []byte
	ref  *buf.Ref // to data; nil: they lie in the Go heap
	turn uint64   // of a response: which is the later of two
}

// release gives the buffer back.
func (s *recalled) release() {
	if s.ref != nil {
		s.ref.Release()
		s.ref = nil
	}
}

// releaseAll gives the buffers of parts back.
func releaseAll(parts []recalled) {
	for i := range parts {
		parts[i].release()
	}
}

// answers reports whether it is the response of a task with the tag.
func (s *recalled) answers(itt uint32) bool { return s.lasts() && s.bhs.ITT() == itt }

// lasts reports whether it is the response of a task that can be reassigned, which RFC
// 7143 section 11.5.1 says of SCSI tasks and of tagged iSCSI operations. Pings and
// logouts are simply sent again.
func (s *recalled) lasts() bool {
	switch s.bhs.Opcode() {
	case pdu.OpSCSIResponse, pdu.OpTaskManagementResponse, pdu.OpTextResponse:
		return true
	}
	return false
}

// sn is the DataSN, or the R2TSN, which has the same place.
func (s *recalled) sn() pdu.SN { return (*pdu.DataIn)(&s.bhs).DataSN() }

// takesStatSN reports whether a PDU of those that SendControl gets uses up a StatSN.
func takesStatSN(bhs *pdu.BHS) bool {
	return bhs.Opcode() != pdu.OpNOPIn || bhs.ITT() != pdu.ReservedTag
}

// SendControl implements Datamover.
func (r *recall) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	if takesStatSN(bhs) {
		kept := data
		if ref != nil {
			kept = slices.Clone(data)
		}
		r.push(recalled{bhs: *bhs, data: kept, turn: r.of.nextAnswer()})
		r.owed += len(kept)
		for r.stamped > 0 && (len(r.statuses) > max(leastStatuses, 2*r.depth) || r.owed > maxRecalled) {
			r.discardStatus()
		}
	}
	r.Resender.SendControl(bhs, data, ref)
	if takesStatSN(bhs) {
		r.sent()
	}
}

// push adds a status behind all others, in the room of forgotten ones if that is half of
// all.
func (r *recall) push(s recalled) {
	n := len(r.statuses)
	if full := n == cap(r.statuses); full && n > 0 && 2*n <= len(r.room) {
		copy(r.room, r.statuses)
		clear(r.room[n:])
		r.statuses = r.room[:n]
	} else if full {
		r.room = make([]recalled, max(16, 2*n))
		r.statuses = r.room[:copy(r.room, r.statuses)]
	}
	r.statuses = append(r.statuses, s)
}

// discardStatus forgets the oldest status, which was sent, and what was sent for the task
// that it ended.
func (r *recall) discardStatus() {
	if s := &r.statuses[0]; s.bhs.Opcode() == pdu.OpSCSIResponse {
		r.drop(s.bhs.ITT())
	}
	r.owed -= len(r.statuses[0].data)
	r.statuses[0] = recalled{}
	r.statuses = r.statuses[1:]
	r.stamped--
}

// PutData implements Datamover.
func (r *recall) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	r.keep(bhs.BHS(), data)
	r.Resender.PutData(bhs, data, ref)
	r.sent()
}

// GetData implements Datamover.
func (r *recall) GetData(bhs *pdu.R2T) {
	if itt := bhs.BHS().ITT(); r.lasting && r.of.exists(itt) {
		releaseAll(r.forget(itt, func(p *recalled) bool { // what has been answered is not missed
			return p.bhs.Opcode() == pdu.OpR2T && !r.of.awaits(itt, p.bhs.TTT())
		}))
	}
	r.keep(bhs.BHS(), nil)
	r.Resender.GetData(bhs)
}

// leastKept is from how many bytes on data are kept outside the Go heap, where the
// smallest buffer is a page.
const leastKept = 1 << 10

// keep keeps a PDU with a copy of its data.
func (r *recall) keep(bhs *pdu.BHS, data []byte) {
	kept := recalled{bhs: *bhs}
	if n := len(data); n >= leastKept && n <= buf.MaxSize {
		kept.ref = r.memory.Get(n)
	}
	if kept.ref != nil {
		kept.data = kept.ref.Bytes()
		memcopy.Copy(kept.data, data)
	} else {
		kept.data = slices.Clone(data)
	}
	r.parts.add(kept)
	r.account(len(data))
	for !r.lasting && (r.parts.bytes > maxRecalled || r.parts.n > maxRecalledPDUs) {
		r.parts.discardFirst()
	}
}

// SetMaxDataIn follows a new declaration of the initiator.
func (r *recall) SetMaxDataIn(n int) {
	if m, ok := r.Resender.(interface{ SetMaxDataIn(int) }); ok {
		m.SetMaxDataIn(n)
	}
}

// Owed implements Debtor.
func (r *recall) Owed() Owed {
	if m, ok := r.Resender.(Debtor); ok {
		return m.Owed()
	}
	return Owed{}
}

// numbered notes the StatSN of the oldest status that had none.
func (r *recall) numbered(sn pdu.SN) {
	if r.stamped < len(r.statuses) {
		r.statuses[r.stamped].bhs.SetStatSN(sn)
		r.stamped++
	}
}

// acknowledged forgets the statuses before ExpStatSN, and what was sent for the tasks
// that they ended.
func (r *recall) acknowledged(exp pdu.SN) {
	for r.stamped > 0 && r.statuses[0].bhs.StatSN().LessThan(exp) {
		r.discardStatus()
	}
}

// drop forgets the Data-In and R2T PDUs of a task.
func (r *recall) drop(itt uint32) {
	before := r.parts.bytes
	r.parts.discard(itt)
	if n := before - r.parts.bytes; n > 0 {
		r.account(-n)
	}
}

// take removes the Data-In and R2T PDUs of a task and returns them, with their buffers.
func (r *recall) take(itt uint32) []recalled {
	return r.forget(itt, func(*recalled) bool { return true })
}

// forget removes those that match, and returns them, with their buffers.
func (r *recall) forget(itt uint32, match func(*recalled) bool) []recalled {
	before := r.parts.bytes
	gone := r.parts.forget(itt, match)
	if n := before - r.parts.bytes; n > 0 {
		r.account(-n)
	}
	return gone
}

// account counts bytes that are kept, or forgotten.
func (r *recall) account(n int) {
	if r.retained || r.lasting {
		r.of.keeps(n, r.retained)
	}
}

// retire follows the loss of the connection: of all statuses those of tasks are kept.
func (r *recall) retire() {
	r.account(-r.parts.bytes)
	r.retained = true
	r.account(r.parts.bytes)
	r.statuses = slices.DeleteFunc(r.statuses, func(s recalled) bool { return !s.lasts() })
	r.stamped, r.owed = 0, 0 // nothing is acknowledged any more
}

// discard forgets everything.
func (r *recall) discard() {
	r.account(-r.parts.bytes)
	for p := r.parts.first; p != nil; p = p.after {
		p.release()
	}
	r.statuses, r.room, r.parts = nil, nil, parts{}
	r.stamped, r.owed = 0, 0
}

// move takes the copies along to another thread: its depot is not that one's.
func (r *recall) move() {
	for p := r.parts.first; p != nil; p = p.after {
		if p.ref != nil {
			p.data = slices.Clone(p.data)
			p.release()
		}
	}
}

// sent follows what is to be acknowledged.
func (r *recall) sent() {
	r.fresh = true
	if r.lasting && r.of.inShort() {
		r.of.askForACKs()
	}
}

// acknowledges takes an answer to a NOP-In of the connection.
func (r *recall) acknowledges(ttt uint32) {
	if r.asked != ttt || ttt == 0 {
		return
	}
	r.asked = 0
	if r.of.inShort() {
		r.of.askForACKs()
	}
}
