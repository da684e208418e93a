package target

import (
	"lunar/internal/evloop"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// An event thread serves many initiators, and what they may ask for without using a
// medium (pings, text, inquiries, task management) costs them next to nothing to
// send. Such control work is counted, in units of about what a small command costs,
// and all connections together get so much of it in one pass of the thread: who
// wants more waits in a line, out of which each gets a turn after the other. So what
// a flood of it takes from those who read and write does not depend on how many
// connections it comes by. Media commands are bounded by the command window, the
// scheduler and memory; of a connection so many are taken in one pass. What a store has
// in memory is sent at once, so long reads wait for bytes in a line of their own, beyond
// what one pass may begin; those that are promised do not wait, and leave less for others.
const (
	// passWork is the control work of one pass. What is done beyond it, because
	// one request was large, is taken off the following passes.
	passWork = 256
	// turnWork is what a connection may do of it when its turn in the line comes.
	turnWork = 16
	// passPDUs bounds the PDUs of one connection in one pass, whatever they are:
	// more than the commands of a large window.
	passPDUs = 512
	// workBytes is how many bytes of control data cost as much as a PDU, as they do
	// in scsi.Command.Effort.
	workBytes = 1 << 10
	// passData is how many bytes of long reads are begun in one pass; turnData is what a
	// connection may begin when its turn in their line comes.
	passData = 4 << 20
	turnData = 64 << 10
	// passTime is for how long, in nanoseconds since it began, a pass goes on to begin long
	// reads: bytes can cost more than usual, because their memory is new or is copied once
	// more for retransmission. At least one turn is had in every pass.
	passTime = 200_000
	// longRead is how many bytes a read may ask for that is bounded by its number alone;
	// mostData is what one counts at most: a command that goes on at once for longer
	// gives way to others (scsi.segment).
	longRead = 16 << 10
	mostData = 1 << 20
)

// shares is an event thread's account of control work. It belongs to the thread.
type shares struct {
	loop    *evloop.Loop
	clock   func() int64 // the loop's, now
	pass    int64        // the loop's time when it began
	left    int          // work that is left in the pass; negative: taken in advance
	line    line         // of connections that wait for their turn
	next    line         // of those that wait for the next pass, whatever the line does
	serving *share       // whose turn it is
	data    int          // bytes of passData that are left; negative: taken in advance
	readers line         // of connections that wait for some of them
	reading *share       // whose turn it is
	due     bool         // Run is queued

	done, most int // work of the pass, and the most of any
}

// share is a connection's part in it.
type share struct {
	deliver   func()      // what waits, unless the connection has ended
	prior     func() bool // its initiator is promised more than it has had
	pass      int64       // that pdus is of
	pdus      int
	credit    int    // work that is left of its turn; negative: taken in advance
	data      int    // bytes of long reads that are; negative: taken in advance
	queued    bool   // in one of the lines
	behind    *share // it, in that line
	suspended bool   // nothing is delivered until proceed
}

// line is a queue of shares, of which each stands in one line at most.
type line struct{ first, last *share }

func (l *line) add(own *share) {
	own.queued = true
	if l.first == nil {
		l.first = own
	} else {
		l.last.behind = own
	}
	l.last = own
}

// take removes the first, which must be there.
func (l *line) take() *share {
	own := l.first
	l.first, own.behind, own.queued = own.behind, nil, false
	return own
}

// begin notes that a pass has begun.
func (s *shares) begin() {
	if now := s.loop.Now(); now != s.pass {
		s.pass, s.left, s.done = now, min(s.left, 0)+passWork, 0
		s.data = min(s.data, 0) + passData
	}
}

// spent reports whether a connection has had its share: its PDU waits for its turn.
func (s *shares) spent(own *share, bhs *pdu.BHS) bool {
	if own.queued || own.suspended {
		return true
	}
	s.begin()
	if own.pass != s.pass {
		own.pass, own.pdus = s.pass, 0
	}
	if own.pdus >= passPDUs {
		s.enlist(&s.next, own)
		return true
	}
	if !isControl(bhs) {
		if bytesRead(bhs) == 0 || own.prior() || s.admitsRead(own) {
			return false
		}
		s.enlist(&s.readers, own)
		return true
	}
	if s.admits(own) {
		return false
	}
	s.enlist(&s.line, own)
	return true
}

// admits reports whether the connection may do control work now.
func (s *shares) admits(own *share) bool {
	if s.left <= 0 {
		return false
	}
	return s.serving == own && own.credit > 0 || s.line.first == nil && s.serving == nil
}

// admitsRead reports whether the connection may begin a long read now.
func (s *shares) admitsRead(own *share) bool {
	if s.data <= 0 {
		return false
	}
	return s.reading == own && own.data > 0 || s.readers.first == nil && s.reading == nil && s.early()
}

func (s *shares) enlist(l *line, own *share) {
	l.add(own)
	s.again()
}

func (s *shares) again() {
	if !s.due {
		s.due = true
		s.loop.Again(s)
	}
}

// Run implements evloop.Task: it serves those who wait, one turn after the other, until
// the work of the pass is done. Who waits alone may do all of it.
func (s *shares) Run() {
	s.due = false
	s.begin()
	next := s.next
	s.next = line{}
	for next.first != nil {
		next.take().deliver()
	}
	for s.line.first != nil && s.left > 0 {
		s.serve(s.line.take())
	}
	if s.readers.first != nil {
		s.loop.Settle() // what is ready does not wait for those
	}
	for first := true; s.readers.first != nil && s.data > 0 && (first || s.early()); first = false {
		s.read(s.readers.take())
	}
	if s.line.first != nil || s.readers.first != nil {
		s.again()
	}
}

// early reports whether the pass has not gone on for long.
func (s *shares) early() bool { return s.clock()-s.pass < passTime }

// serve is the turn of a connection.
func (s *shares) serve(own *share) {
	own.credit = min(own.credit, 0) + turnWork
	if own.credit <= 0 {
		s.enlist(&s.line, own)
		return
	}
	s.serving = own
	own.deliver()
	s.serving = nil
}

// read is the turn of a connection that waits for a long read.
func (s *shares) read(own *share) {
	own.data = min(own.data, 0) + turnData
	if own.data <= 0 {
		s.enlist(&s.readers, own)
		return
	}
	s.reading = own
	own.deliver()
	s.reading = nil
}

// proceed ends what suspended a connection.
func (s *shares) proceed(own *share) {
	own.suspended = false
	if !own.queued {
		s.enlist(&s.line, own)
	}
}

// waits reports whether it is the thread that lets the connection wait: it is not
// heard of meanwhile.
func (s *share) waits() bool { return s.queued || s.suspended }

// count counts a PDU with n bytes of data.
func (s *shares) count(own *share, bhs *pdu.BHS, n int) {
	own.pdus++
	if isControl(bhs) {
		s.charge(own, 1+n/workBytes)
	} else if bytes := bytesRead(bhs); bytes > 0 {
		s.begin()
		s.data -= bytes
		if s.reading == own {
			own.data -= bytes
		}
	}
}

// charge counts control work.
func (s *shares) charge(own *share, work int) {
	s.begin()
	s.left -= work
	if s.serving == own {
		own.credit -= work
	}
	s.done += work
	s.most = max(s.most, s.done)
}

// bytesRead is what a long read asks for, 0 of other media commands.
func bytesRead(bhs *pdu.BHS) int {
	p := (*pdu.SCSICommand)(bhs)
	if bhs.Opcode() != pdu.OpSCSICommand || !p.Read() {
		return 0
	}
	if n := p.ExpectedDataTransferLength(); n > longRead {
		return int(min(n, mostData))
	}
	return 0
}

// isControl reports whether a PDU is neither a media command with a place in the
// command window, nor data, of which the bytes that are read bound the number.
func isControl(bhs *pdu.BHS) bool {
	switch bhs.Opcode() {
	case pdu.OpSCSICommand:
		p := (*pdu.SCSICommand)(bhs)
		return !p.InTurn() || !scsi.UsesMedium(p.CDB()) // for an order others are asked
	case pdu.OpDataOut:
		return bhs.DataSegmentLength() < workBytes/2
	}
	return true
}

// CmdWindow is the command window of a session (RFC 7143 section 4.2.2.1):
// the flow control by which the target says how many commands it takes.
//
// INVARIANT: MaxCmdSN never moves backwards.
type CmdWindow struct {
	exp   pdu.SN // the next CmdSN
	max   pdu.SN // the last CmdSN granted
	depth uint32 // commands that may be queued or run at a time
	used  uint32 // commands that came through the window and have not ended

	frozen bool // nothing more is granted for now
	queued int  // commands that wait for their turn with the scheduler
	paced  int  // of which so many may
}

// NewCmdWindow returns the window of a session whose first command will carry
// first, for at most depth commands at a time.
func NewCmdWindow(first pdu.SN, depth uint32) CmdWindow {
	return CmdWindow{exp: first, max: first.Add(depth - 1), depth: depth, paced: paceFrom}
}

// Admission is what the window says of a command's CmdSN.
type Admission uint8

// The answers of Admit.
const (
	Admitted Admission = iota // next in order: it counts as running until Done
	Early                     // within the window, but commands before it are missing
	Outside                   // outside the window: to be ignored silently (RFC 7143 section 4.2.2.1)
)

// Admit judges a non-immediate command and takes it when it is the next.
func (w *CmdWindow) Admit(sn pdu.SN) Admission {
	switch {
	case sn == w.exp && w.exp.LessEq(w.max):
		w.exp++
		w.used++
		return Admitted
	case sn.InWindow(w.exp, w.max):
		return Early
	}
	return Outside
}

// Done gives back the place of an admitted command.
func (w *CmdWindow) Done() { w.used-- }

// Grant returns ExpCmdSN and MaxCmdSN for a PDU that leaves now.
func (w *CmdWindow) Grant() (exp, max pdu.SN) {
	if grant := w.exp + pdu.SN(w.room()) - 1; !w.frozen && w.max.LessThan(grant) {
		w.max = grant
	}
	return w.exp, w.max
}

// room is how many commands more may come: what the depth leaves, and while
// some wait for their turn no more than may wait.
func (w *CmdWindow) room() uint32 {
	room := w.depth - w.used
	if w.queued > 0 {
		room = min(room, uint32(max(0, w.paced-w.queued)))
	}
	return room
}

// paceFrom is how many commands of a session may wait for their turn on each
// device before the initiator is held back: more would only wait here instead of
// there.
const paceFrom = 32

// Devices says on how many backing devices the session's commands may wait:
// those for a slow one do not take the place of those for others.
func (w *CmdWindow) Devices(n int) { w.paced = paceFrom * n }

// Queued counts commands that begin, or cease, to wait for their turn.
func (w *CmdWindow) Queued(n int) { w.queued += n }

// Freeze stops, or resumes, granting: what was granted stays granted.
func (w *CmdWindow) Freeze(on bool) { w.frozen = on }
