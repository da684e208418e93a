package initiator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// LogoutOf sends a logout request for a connection of the session and returns the
// response code and how many seconds the target says that tasks can be reassigned for.
func (c *Conn) LogoutOf(reason byte, cid uint16) (code byte, wait, retain int, err error) {
	p := NewPDU(OpLogout, FlagFinal|reason, nil)
	p.BHS[20], p.BHS[21] = byte(cid>>8), byte(cid)
	answer, err := c.request(p, true, OpLogoutResponse)
	if err != nil {
		return 0, 0, 0, err
	}
	b := answer.BHS[40:]
	return answer.BHS[2], int(b[0])<<8 | int(b[1]), int(b[2])<<8 | int(b[3]), nil
}

// TakeOver continues the tasks of a connection of the session that was lost and logged
// out for recovery (RFC 7143 section 7.2): those that have reached the target are
// reassigned to c, the others are sent again. When it fails, lost still has those that
// are not taken over.
func (c *Conn) TakeOver(lost *Conn) error {
	lost.ahead = nil
	tasks := slices.SortedFunc(maps.Values(lost.tasks), func(a, b *Task) int { return cmp.Compare(a.ITT, b.ITT) })
	for _, t := range tasks {
		code, err := c.reassign(t)
		switch {
		case err != nil:
			return err
		case code == 1 && (t.Command.Immediate || !before(t.CmdSN, c.ExpCmdSN)):
			err = c.retry(t)
		case code != 0:
			return fmt.Errorf("TASK REASSIGN of task %#x with CmdSN %d, ExpCmdSN is %d: response %d", t.ITT, t.CmdSN, c.ExpCmdSN, code)
		}
		delete(lost.tasks, t.ITT)
		if err != nil {
			return err
		}
	}
	return nil
}

// reassign asks for the task, of which c has dataPDUs Data-In or R2T PDUs, from the
// next one on.
func (c *Conn) reassign(t *Task) (code byte, err error) {
	code, err = c.TaskManagement(TaskRequest{Function: TaskReassign, Referenced: t, ExpDataSN: t.dataPDUs})
	if err == nil && code == 0 {
		t.askedData, t.R2Ts, t.openTransfer = 0, nil, map[uint32]bool{}
		c.tasks[t.ITT] = t
	}
	return code, err
}

// retry sends a command again that has not reached the target.
func (c *Conn) retry(t *Task) error {
	immediate := c.immediateLength(len(t.Command.Out))
	t.unsolicited = c.unsolicitedLength(len(t.Command.Out), immediate)
	t.asked = t.unsolicited
	c.tasks[t.ITT] = t
	if err := c.Send(c.commandPDU(t, immediate)); err != nil {
		return err
	}
	return c.sendBurst(t, NoTag, immediate, t.unsolicited)
}
