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
// scheduler and memory, and wait in no line; only their number in one pass is bounded.
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
)

// shares is an event thread's account of control work. It belongs to the thread.
type shares struct {
	loop    *evloop.Loop
	pass    int64         // the loop's time when it began
	left    int           // work that is left in the pass; negative: taken in advance
	line    []*Connection // that wait for their turn
	next    []*Connection // that wait for the next pass, whatever the line does
	serving *Connection   // whose turn it is
	due     bool          // Run is queued

	done, most int // work of the pass, and the most of any
}

// share is a connection's part in it.
type share struct {
	pass   int64 // that pdus is of
	pdus   int
	credit int  // work that is left of its turn; negative: taken in advance
	queued bool // in one of the lists
	held   bool // nothing is delivered until goOn
}

// begin notes that a pass has begun.
func (s *shares) begin() {
	if now := s.loop.Now(); now != s.pass {
		s.pass, s.left, s.done = now, min(s.left, 0)+passWork, 0
	}
}

// Spent implements Receiver.
func (c *Connection) Spent(bhs *pdu.BHS) bool {
	own, all := &c.share, &c.thread.shares
	if own.queued || own.held {
		return true
	}
	all.begin()
	if own.pass != all.pass {
		own.pass, own.pdus = all.pass, 0
	}
	if own.pdus >= passPDUs {
		all.next = all.enlist(all.next, c)
		return true
	}
	if !isControl(bhs) || all.admits(c) {
		return false
	}
	all.line = all.enlist(all.line, c)
	return true
}

// admits reports whether the connection may do control work now.
func (s *shares) admits(c *Connection) bool {
	if s.left <= 0 {
		return false
	}
	return s.serving == c && c.share.credit > 0 || len(s.line) == 0 && s.serving == nil
}

func (s *shares) enlist(list []*Connection, c *Connection) []*Connection {
	c.share.queued = true
	if !s.due {
		s.due = true
		s.loop.Again(s)
	}
	return append(list, c)
}

// Run implements evloop.Task: it serves those who wait, each once, until the work of
// the pass is done.
func (s *shares) Run() {
	s.due = false
	s.begin()
	next := s.next
	s.next = nil
	for _, c := range next {
		c.share.queued = false
		if !c.closed {
			c.mover.Resume()
		}
	}
	for n := len(s.line); n > 0 && s.left > 0; n-- {
		c := s.line[0]
		s.line[0] = nil
		s.line = s.line[1:]
		s.serve(c)
	}
	if len(s.line) > 0 && !s.due {
		s.due = true
		s.loop.Again(s)
	}
}

// serve is the turn of a connection.
func (s *shares) serve(c *Connection) {
	c.share.queued = false
	if c.closed {
		return
	}
	c.share.credit = min(c.share.credit, 0) + turnWork
	if c.share.credit <= 0 {
		s.line = s.enlist(s.line, c)
		return
	}
	s.serving = c
	c.mover.Resume()
	s.serving = nil
}

// pause keeps everything that the connection sends waiting until goOn.
func (c *Connection) pause() { c.share.held = true }

func (c *Connection) goOn() {
	c.share.held = false
	if s := &c.thread.shares; !c.share.queued && !c.closed {
		s.line = s.enlist(s.line, c)
	}
}

// waits reports whether it is the thread that lets the connection wait: it is not
// heard of meanwhile.
func (s *share) waits() bool { return s.queued || s.held }

// count counts a PDU with n bytes of data.
func (c *Connection) count(bhs *pdu.BHS, n int) {
	c.share.pdus++
	if isControl(bhs) {
		c.charge(1 + n/workBytes)
	}
}

// charge counts control work.
func (c *Connection) charge(work int) {
	s := &c.thread.shares
	s.begin()
	s.left -= work
	if s.serving == c {
		c.share.credit -= work
	}
	s.done += work
	s.most = max(s.most, s.done)
}

// isControl reports whether a PDU is neither a media command with a place in the
// command window, nor data, of which the bytes that are read bound the number.
func isControl(bhs *pdu.BHS) bool {
	switch bhs.Opcode() {
	case pdu.OpSCSICommand:
		p := (*pdu.SCSICommand)(bhs)
		ordered := scsi.TaskAttribute(p.Attribute()) > scsi.Simple // others are asked
		return bhs.Immediate() || ordered || !scsi.UsesMedium(p.CDB())
	case pdu.OpDataOut:
		return bhs.DataSegmentLength() < workBytes/2
	}
	return true
}
