package scsi

import (
	"lunar/backstore/protect"
	"lunar/internal/invariants"
)

// Execute runs c, whose Nexus leads to lu. Everything that c does later
// happens on the calling event thread; c may end before Execute returns.
func (lu *LogicalUnit) Execute(c *Command) {
	if s := c.decode(); s != nil {
		c.Fail(s)
		return
	}
	if (c.Attribute > Simple || lu.tasks.watched.Load()) && !lu.enter(c) {
		return
	}
	lu.proceed(c)
}

// proceed runs a command whose turn it is in the task set.
func (lu *LogicalUnit) proceed(c *Command) {
	if s := lu.admit(c); s != nil {
		c.Fail(s)
		return
	}
	if barred := bars(c.Nexus.barred.Load()) & c.row.barred; barred != 0 {
		c.refuse(barred)
		return
	}
	if c.row.Flags&ParameterList != 0 {
		c.fetch(c.row.List(&c.CDB), 0, c.row.Run)
		return
	}
	c.row.Run(c)
}

// ExecuteNoLU runs c, whose LUN is not mapped: Nexus.LU is nil. The few
// commands that SAM-5 clause 5.12 answers for an incorrect LUN run; the others
// end with LOGICAL UNIT NOT SUPPORTED.
func ExecuteNoLU(c *Command) {
	s := c.decode()
	switch {
	case c.row == nil || c.row.Flags&NoLU == 0:
		c.Fail(LUNotSupported)
	case s != nil:
		c.Fail(s)
	default:
		c.row.Run(c)
	}
}

// decode finds the command's row and checks its CDB against the usage data.
func (c *Command) decode() *Sense {
	if c.seg[0].cmd == nil {
		c.bind()
	}
	row, s := lookup(&c.CDB)
	if s != nil {
		return s
	}
	c.row = row
	if row.Flags&Protectable != 0 {
		return c.checkProtection()
	}
	return c.checkCDB(&c.CDB)
}

// admit makes the checks that all commands have in common.
func (lu *LogicalUnit) admit(c *Command) *Sense {
	row := c.row
	if row.Flags&IgnoreAttention == 0 {
		if s := c.pending(); s != nil {
			return s
		}
	}
	if !lu.supports(row) {
		if row.Flags&(NeedsErase|NeedsCryptoErase) != 0 { // SANITIZE is there, with other service actions
			return InvalidFieldInCDB(1, 4)
		}
		return InvalidOpcode
	}
	state := lu.state.Load()
	if s := state.unready(row); s != nil {
		return s
	}
	return lu.forbids(c.Nexus, row, state)
}

// forbids returns why n may not run the row's command for want of the right to write, or
// nil.
func (lu *LogicalUnit) forbids(n *Nexus, row *Row, state *State) *Sense {
	switch {
	case row.Access == AccessWrite:
		return lu.protection(n, state)
	case row.Flags&NeedsWriter != 0 && n.ReadOnly.Load():
		return WriteProtected
	}
	return nil
}

// pending returns what the initiator is to be told before anything is done for
// it: a unit attention, else a deferred error.
func (c *Command) pending() *Sense {
	if c.Nexus.attentions.pending.Load() {
		if asc, ok := c.Nexus.takeAttention(); ok {
			return c.sense(Sense{Key: UnitAttention, ASC: asc})
		}
	}
	return c.Nexus.takeDeferred()
}

// unready returns why a command of the row cannot run in the state, or nil.
func (state *State) unready(row *Row) *Sense {
	switch z := state.Sanitize; {
	case z != nil && row.Flags&DuringSanitize == 0:
		s := z.sense()
		return &s
	case state.Ejected && (row.Flags&IgnoreStopped == 0 || row.Flags&NeedsMedium != 0):
		return MediumNotPresent
	case state.Stopped && row.Flags&IgnoreStopped == 0:
		return InitializingCommandRequired
	}
	return nil
}

// supports reports whether the logical unit has the row's command.
func (lu *LogicalUnit) supports(row *Row) bool {
	return (row.Flags&NeedsDiscard == 0 || lu.traits().info.Discard) &&
		(row.Flags&NeedsErase == 0 || lu.traits().info.Discard && lu.traits().info.DiscardZeroes) &&
		(row.Flags&NeedsCryptoErase == 0 || lu.traits().info.CryptoErase) &&
		(row.Flags&NeedsAtomic == 0 || lu.traits().limits.MaxAtomic > 0) &&
		(row.Flags&NeedsRemovable == 0 || lu.config.Removable) &&
		(row.Flags&NeedsType2 == 0 || lu.protect == protect.Type2) &&
		(row.Flags&NeedsExplicitAccess == 0 || lu.traits().explicit)
}

// protection returns why n may not write, or nil.
func (lu *LogicalUnit) protection(n *Nexus, state *State) *Sense {
	switch {
	case n.ReadOnly.Load() || state.ReadOnly:
		return WriteProtected
	case state.SoftProtect:
		return SoftwareWriteProtected
	}
	return nil
}

// sense stores a sense value that no other command shares in c.
func (c *Command) sense(s Sense) *Sense {
	c.fault = s
	return &c.fault
}

// Good ends the command with GOOD status and without data.
func (c *Command) Good() { c.end(Good, nil) }

// Fail ends the command with CHECK CONDITION and s, which stays unchanged from
// now on. If operations are still running, nothing new is started and the end
// waits for them. The first failure of a command is the one that is reported.
func (c *Command) Fail(s *Sense) { c.end(CheckCondition, s) }

// FailStatus ends the command with a status other than CHECK CONDITION, under
// the same conditions as Fail.
func (c *Command) FailStatus(st Status) { c.end(st, nil) }

// FailTransfer is Fail for a transport that cannot deliver the Data-Out any
// more: nothing of it is awaited.
func (c *Command) FailTransfer(s *Sense) {
	c.out = 0
	if c.ending {
		c.settle() // it may have waited for nothing but that
		return
	}
	c.Fail(s)
}

// ForgoTransfer is FailTransfer with a status in place of sense.
func (c *Command) ForgoTransfer(st Status) {
	c.out = 0
	if c.ending {
		c.settle()
		return
	}
	c.FailStatus(st)
}

func (c *Command) end(st Status, s *Sense) {
	if c.ending {
		return
	}
	c.Status, c.Sense, c.ending = st, s, true
	c.endWait()
	c.settle()
}

// SendParameter ends the command with GOOD and parameter data: at most
// allocation bytes of data, which stays unchanged until the port has sent it.
func (c *Command) SendParameter(data []byte, allocation uint32) {
	if c.ending {
		return
	}
	c.Effort += len(data) >> 10
	c.Length = uint32(min(uint64(len(data)), uint64(allocation)))
	c.Parameter = data[:c.dataIn()]
	c.ending = true
	c.settle()
}

// settle gives the command back to the port if it is to end and nothing of it
// is under way any more. This is the only place where a command ends of its
// own accord: the caller must not touch c afterwards.
func (c *Command) settle() {
	if !c.ending || c.pumping || c.running > 0 || c.out > 0 {
		return
	}
	final := c.final
	c.final = nil
	if final == nil {
		if c.Status == CheckCondition && !c.aborted {
			c.failed()
		}
		c.release()
		c.deliver()
		return
	}
	ref := final.ref
	final.ref = nil
	c.release()
	c.Port.SendDataIn(c, final.off, ref, ref.Bytes()[:final.n], true)
}

// deliver ends a command without a final segment.
func (c *Command) deliver() {
	if len(c.Parameter) > 0 && c.Status == Good && !c.aborted {
		c.Port.SendDataIn(c, 0, nil, c.Parameter, true)
		return
	}
	c.Port.Complete(c)
}

// Abort ends the command for task management or a lost connection. Nothing new
// is started, and no Data-Out is wanted any more. True says that the command is
// the port's again, without Complete; false that Complete follows when the
// operations in the lane's hands have ended.
func (c *Command) Abort() (ended bool) {
	c.ending, c.aborted, c.final, c.out = true, true, nil, 0
	c.endWait()
	if c.running > 0 {
		return false
	}
	c.release()
	return true
}

// Resume continues the command after Port.Alloc said not now.
func (c *Command) Resume() {
	if c.starved {
		c.starved = false
		c.pump()
	}
}

// DataOut tells that the n bytes at buffer offset off that ReceiveDataOut asked
// for are in place.
func (c *Command) DataOut(off, n uint32) {
	if c.out == 0 {
		return
	}
	c.out--
	for i := c.head; i != c.tail; i++ {
		if s := c.at(i); s.off == off && s.state == receiving {
			invariants.Assert(s.n == n, "scsi: Data-Out of another length than asked for")
			s.state = arrived
		}
	}
	c.pump()
}

// pump runs the command's step until it has nothing more to start. Events that
// happen while step is on the stack are seen by its next turn, so that step
// never nests.
func (c *Command) pump() {
	if c.pumping {
		c.again = true
		return
	}
	c.pumping = true
	for c.again = true; c.again && !c.ending; {
		c.again = false
		c.step(c)
	}
	c.pumping = false
	c.settle()
}

// run makes step the command's next step and takes it.
func (c *Command) run(step func(*Command)) {
	c.step = step
	c.pump()
}

// release lets go of all that an ended command holds.
func (c *Command) release() {
	if c.place != nil {
		c.leave()
	}
	for c.head != c.tail {
		c.close()
	}
	if c.atomic != nil {
		c.Nexus.LU.atomics.leave(c.atomic)
		c.atomic = nil
	}
	if c.copy != nil {
		c.copy.ended(c)
	}
	if c.waitsFor != nil {
		c.waitsFor.waiter, c.waitsFor = nil, nil
	}
	if c.sanitizes != nil && c.aborted {
		c.sanitizes.abandoned(c.Nexus.LU)
	}
	if c.list != nil {
		c.list.Release()
		c.list, c.data = nil, nil
	}
}
