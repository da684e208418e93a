package target

import "lunar/target/pdu"

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
